//! The call tree, with the instructions that each function executed itself.

use crate::symbols::Function;

/// A node of a [`Tree`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place(usize);

#[derive(Debug, Clone)]
struct Node {
    function: Function,
    parent: Place,
    own: u64,
    children: Vec<Place>,
}

/// A tree to compare with others: depth, function and own instructions of each node, each
/// node's children in the functions' order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Shape(Vec<(usize, Function, u64)>);

/// Calls, from the outermost functions inwards. The root is not a function.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
}

impl Tree {
    /// The root, above the outermost function.
    pub(crate) const ROOT: Place = Place(0);

    /// An empty tree.
    pub(crate) fn new() -> Self {
        let root = Node {
            function: Function(0),
            parent: Self::ROOT,
            own: 0,
            children: Vec::new(),
        };
        Self { nodes: vec![root] }
    }

    /// The node of a function called from a node; a new one if it was not called from there
    /// before.
    pub(crate) fn child(&mut self, parent: Place, function: Function) -> Place {
        let is_it = |place: &&Place| self.nodes[place.0].function == function;
        if let Some(&place) = self.nodes[parent.0].children.iter().find(is_it) {
            return place;
        }
        let place = Place(self.nodes.len());
        self.nodes.push(Node { function, parent, own: 0, children: Vec::new() });
        self.nodes[parent.0].children.push(place);
        place
    }

    /// The caller of a node; the root's is the root.
    pub(crate) fn parent(&self, place: Place) -> Place {
        self.nodes[place.0].parent
    }

    /// The function of a node; none for the root.
    pub(crate) fn function(&self, place: Place) -> Option<Function> {
        (place != Self::ROOT).then(|| self.nodes[place.0].function)
    }

    /// Adds instructions that the function of a node executed itself.
    pub(crate) fn add(&mut self, place: Place, instructions: u64) {
        self.nodes[place.0].own += instructions;
    }

    /// Adds all of another tree, as if called from `place`.
    pub(crate) fn add_tree(&mut self, place: Place, other: &Self) {
        self.add_below(place, other, Self::ROOT);
    }

    fn add_below(&mut self, place: Place, other: &Self, from: Place) {
        self.add(place, other.nodes[from.0].own);
        for &child in &other.nodes[from.0].children {
            let here = self.child(place, other.nodes[child.0].function);
            self.add_below(here, other, child);
        }
    }

    /// The sum of all instructions.
    pub(crate) fn total(&self) -> u64 {
        self.nodes.iter().map(|node| node.own).sum()
    }

    /// The tree in a form that does not depend on the order of insertion.
    pub(crate) fn shape(&self) -> Shape {
        let mut shape = Vec::with_capacity(self.nodes.len());
        self.shape_below(Self::ROOT, 0, &mut shape);
        Shape(shape)
    }

    fn shape_below(
        &self,
        place: Place,
        depth: usize,
        into: &mut Vec<(usize, Function, u64)>,
    ) {
        let node = &self.nodes[place.0];
        into.push((depth, node.function, node.own));
        let mut children = node.children.clone();
        children.sort_unstable_by_key(|child| self.nodes[child.0].function);
        for child in children {
            self.shape_below(child, depth + 1, into);
        }
    }

    /// Every stack in which instructions were executed, outermost function first. The root's own
    /// instructions have the empty stack.
    pub(crate) fn stacks(&self) -> Vec<(Vec<Function>, u64)> {
        let used = self.nodes.iter().enumerate().filter(|(_, node)| node.own > 0);
        used.map(|(index, node)| (self.path(Place(index)), node.own)).collect()
    }

    fn path(&self, mut place: Place) -> Vec<Function> {
        let mut path = Vec::new();
        while let Some(function) = self.function(place) {
            path.push(function);
            place = self.parent(place);
        }
        path.reverse();
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a function called twice from one node has one node, and that trees add up
    /// when one is inserted below a node of another.
    #[test]
    fn adds_up() {
        let mut tree = Tree::new();
        let a = tree.child(Tree::ROOT, Function(1));
        let b = tree.child(a, Function(2));
        assert_eq!(tree.child(a, Function(2)), b);
        tree.add(a, 3);
        tree.add(b, 4);

        let mut whole = Tree::new();
        let top = whole.child(Tree::ROOT, Function(9));
        whole.add_tree(top, &tree);
        whole.add_tree(top, &tree);
        assert_eq!(whole.total(), 14);
        let path =
            |functions: &[usize]| functions.iter().copied().map(Function).collect();
        assert_eq!(whole.stacks(), [(path(&[9, 1]), 6), (path(&[9, 1, 2]), 8)]);
    }
}
