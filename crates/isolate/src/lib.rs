//! Take hold of a CPU: pin, prioritise, and say why not.
