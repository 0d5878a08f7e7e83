//! The wgmmas that may be in flight at one point of a role.

use super::act::{Acts, IssuedWgmma};
use crate::bits::Bits;

/// The union over all paths to this point: the wgmmas in flight, and the registers accessed since the
/// last fence.
#[derive(Clone)]
pub(super) struct State {
    /// May this point be reached without any wgmma fence?
    pub(super) unfenced: bool,
    /// Registers accessed since the last fence.
    accessed: Bits,
    /// Wgmmas that are not committed to a group.
    uncommitted: Bits,
    /// Wgmmas of committed groups, the youngest group first.
    groups: Vec<Bits>,
    /// The registers of all these wgmmas.
    owned: Bits,
}

impl State {
    /// Creates the state at the start of a role.
    pub(super) fn new(acts: &Acts) -> Self {
        let wgmmas = Bits::new(acts.issues);
        let registers = Bits::new(acts.regs.len());
        Self {
            unfenced: true,
            accessed: registers.clone(),
            groups: vec![wgmmas.clone(); acts.ages],
            uncommitted: wgmmas,
            owned: registers,
        }
    }

    pub(super) fn fence(&mut self) {
        self.unfenced = false;
        self.accessed.clear();
    }

    pub(super) fn issue(&mut self, wgmma: usize, acts: &Acts) {
        self.uncommitted.insert(wgmma);
        self.owned.add(&acts.wgmmas[wgmma].all);
    }

    /// Commits a group: all other groups age by one, and the oldest ones stay merged.
    pub(super) fn commit(&mut self) {
        self.groups.insert(0, self.uncommitted.clone());
        self.uncommitted.clear();
        if let Some(oldest) = self.groups.pop()
            && let Some(last) = self.groups.last_mut()
        {
            last.add(&oldest);
        }
    }

    /// Waits until at most `pending` groups are in flight.
    pub(super) fn wait(&mut self, pending: usize, acts: &Acts) {
        self.groups.iter_mut().skip(pending).for_each(Bits::clear);
        self.owned.clear();
        for set in std::iter::once(&self.uncommitted).chain(&self.groups) {
            for p in set.iter() {
                self.owned.add(&acts.wgmmas[p].all);
            }
        }
    }

    /// Records an access to a register.
    pub(super) fn touch(&mut self, r: usize) {
        self.accessed.insert(r);
    }

    /// Returns a register that the wgmma uses and that another op accessed since the last fence.
    pub(super) fn accessed_register(&self, wgmma: &IssuedWgmma) -> Option<usize> {
        self.accessed.common(&wgmma.all)
    }

    /// Returns the number of owned registers.
    pub(super) fn owned(&self) -> u32 {
        self.owned.count()
    }

    /// Returns the wgmma that may own a register.
    pub(super) fn owner<'r>(&self, r: usize, acts: &'r Acts) -> Option<&'r IssuedWgmma> {
        if !self.owned.contains(r) {
            return None;
        }
        self.in_flight(acts).find(|p| p.all.contains(r))
    }

    /// Returns a wgmma in flight that owns a register that `new` may not use before a wait. Wgmmas of
    /// the same shape may share the same accumulators.
    pub(super) fn conflict<'r>(
        &self,
        new: &IssuedWgmma,
        acts: &'r Acts,
    ) -> Option<&'r IssuedWgmma> {
        self.owned.common(&new.all)?;
        self.in_flight(acts).find(|old| {
            let same_accumulation =
                old.shape == new.shape && old.ordered_accumulators == new.ordered_accumulators;
            let overlap = |a: &Bits, b: &Bits| a.common(b).is_some();
            !same_accumulation && overlap(&old.accumulators, &new.accumulators)
                || overlap(&old.accumulators, &new.a_registers)
                || overlap(&old.a_registers, &new.accumulators)
        })
    }

    /// Returns the wgmmas that may be in flight, the youngest group first.
    fn in_flight<'r>(&self, acts: &'r Acts) -> impl Iterator<Item = &'r IssuedWgmma> {
        let sets = std::iter::once(&self.uncommitted).chain(&self.groups);
        sets.flat_map(Bits::iter).map(|p| &acts.wgmmas[p])
    }

    /// Joins the state of another path; returns whether the state changed.
    pub(super) fn join(&mut self, other: &Self) -> bool {
        let mut changed = other.unfenced && !self.unfenced;
        self.unfenced |= other.unfenced;
        changed |= self.accessed.add(&other.accessed);
        changed |= self.uncommitted.add(&other.uncommitted);
        for (mine, theirs) in self.groups.iter_mut().zip(&other.groups) {
            changed |= mine.add(theirs);
        }
        self.owned.add(&other.owned);
        changed
    }
}
