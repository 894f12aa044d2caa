//! Blocks and instructions while QEMU translates them; the pointers are valid only then.

use crate::qemu::api;

/// A block.
pub(crate) struct Translated(pub(crate) *mut api::Block);

/// One instruction of a block.
pub(crate) struct Instruction(pub(crate) *mut api::Instruction);
