//! What may be in flight at one point of a role.

use super::act::{Acts, Product};
use crate::bits::Bits;

/// Products that no wait has covered on some way here, and what was accessed
/// since a fence on some way here.
#[derive(Clone)]
pub(super) struct State {
    /// May no wgmma fence have been run at all?
    pub(super) unfenced: bool,
    /// Registers accessed since the last fence.
    touched: Bits,
    /// Products in no group yet.
    loose: Bits,
    /// Products of committed groups, the youngest group first.
    groups: Vec<Bits>,
    /// The registers of all these products.
    owned: Bits,
}

impl State {
    /// At the start of a role.
    pub(super) fn new(acts: &Acts) -> Self {
        let products = Bits::new(acts.issues);
        let registers = Bits::new(acts.regs.len());
        Self {
            unfenced: true,
            touched: registers.clone(),
            groups: vec![products.clone(); acts.ages],
            loose: products,
            owned: registers,
        }
    }

    pub(super) fn fence(&mut self) {
        self.unfenced = false;
        self.touched.clear();
    }

    pub(super) fn issue(&mut self, product: usize, acts: &Acts) {
        self.loose.insert(product);
        self.owned.add(&acts.products[product].all);
    }

    /// Closes a group: all others are one older, and the oldest stay together.
    pub(super) fn commit(&mut self) {
        self.groups.insert(0, self.loose.clone());
        self.loose.clear();
        if let Some(oldest) = self.groups.pop()
            && let Some(last) = self.groups.last_mut()
        {
            last.add(&oldest);
        }
    }

    /// Waits until at most `pending` groups are open.
    pub(super) fn wait(&mut self, pending: usize, acts: &Acts) {
        self.groups.iter_mut().skip(pending).for_each(Bits::clear);
        self.owned.clear();
        for set in std::iter::once(&self.loose).chain(&self.groups) {
            for p in set.iter() {
                self.owned.add(&acts.products[p].all);
            }
        }
    }

    /// Notes an access of a register.
    pub(super) fn touch(&mut self, r: usize) {
        self.touched.insert(r);
    }

    /// A register of a product that was accessed since the last fence.
    pub(super) fn accessed(&self, product: &Product) -> Option<usize> {
        self.touched.common(&product.all)
    }

    /// How many registers are owned.
    pub(super) fn owned(&self) -> u32 {
        self.owned.count()
    }

    /// The product that may own a register.
    pub(super) fn owner<'r>(&self, r: usize, acts: &'r Acts) -> Option<&'r Product> {
        if !self.owned.contains(r) {
            return None;
        }
        self.open(acts).find(|p| p.all.contains(r))
    }

    /// The open product whose registers a new one may not have yet.
    pub(super) fn conflict<'r>(&self, new: &Product, acts: &'r Acts) -> Option<&'r Product> {
        self.owned.common(&new.all)?;
        self.open(acts).find(|old| {
            let follows = old.shape == new.shape && old.list == new.list;
            let meet = |a: &Bits, b: &Bits| a.common(b).is_some();
            !follows && meet(&old.sums, &new.sums)
                || meet(&old.sums, &new.left)
                || meet(&old.left, &new.sums)
        })
    }

    /// The products that may be open, the youngest group first.
    fn open<'r>(&self, acts: &'r Acts) -> impl Iterator<Item = &'r Product> {
        let sets = std::iter::once(&self.loose).chain(&self.groups);
        sets.flat_map(Bits::iter).map(|p| &acts.products[p])
    }

    /// Adds what may hold on another way; says whether that changed anything.
    pub(super) fn join(&mut self, other: &Self) -> bool {
        let mut changed = other.unfenced && !self.unfenced;
        self.unfenced |= other.unfenced;
        changed |= self.touched.add(&other.touched);
        changed |= self.loose.add(&other.loose);
        for (mine, theirs) in self.groups.iter_mut().zip(&other.groups) {
            changed |= mine.add(theirs);
        }
        self.owned.add(&other.owned);
        changed
    }
}
