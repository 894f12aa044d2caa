//! Things that are stored once, and have numbers in their place.

use std::collections::HashMap;
use std::hash::Hash;

/// Things that are stored once, by number.
#[derive(Debug)]
pub(crate) struct Interned<T> {
    ids: HashMap<T, u32>,
    all: Vec<T>,
}

impl<T> Default for Interned<T> {
    fn default() -> Self {
        Self { ids: HashMap::new(), all: Vec::new() }
    }
}

impl<T: Clone + Eq + Hash> Interned<T> {
    /// The number of a thing, which is stored if it is new.
    pub(crate) fn id(&mut self, item: T) -> u32 {
        if let Some(id) = self.ids.get(&item) {
            return *id;
        }
        let id = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        self.ids.insert(item.clone(), id);
        self.all.push(item);
        id
    }

    pub(crate) fn get(&self, id: u32) -> Option<&T> {
        self.all.get(id as usize)
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }
}
