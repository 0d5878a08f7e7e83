//! Errors in roles, their registers, turns and the prologue barrier.

pub(super) mod no_role {
    //! The roles hold all code of a kernel.

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        k.param::<u32>("n");
    }

    pub(crate) fn repaired(k: Builder) {
        k.param::<u32>("n");
        k.role("work").body(|| {});
    }
}

pub(super) mod role_name {
    //! Reports, timelines and turns refer to a role by its name.

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        k.role("consumer").body(|| {});
        k.role("consumer").body(|| {});
    }

    pub(crate) fn repaired(k: Builder) {
        k.role("consumer0").body(|| {});
        k.role("consumer1").body(|| {});
    }
}

pub(super) mod role_warps {
    //! A role is a set of warps that run the same code.

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        k.role("work").warps(0).body(|| {});
    }

    pub(crate) fn repaired(k: Builder) {
        k.role("work").warps(4).body(|| {});
    }
}

pub(super) mod role_inside_role {
    //! Every warp belongs to one role, so roles do not nest.

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        k.role("load").body(|| {
            k.role("store").body(|| {});
        });
    }

    pub(crate) fn repaired(k: Builder) {
        k.role("load").body(|| {});
        k.role("store").body(|| {});
    }
}

pub(super) mod elect_inside_elect {
    //! `elect` runs its body in one lane. That lane cannot elect again: `elect.sync` needs the
    //! whole warp.

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        k.role("load").body(|| elect(|| elect(|| {})));
    }

    pub(crate) fn repaired(k: Builder) {
        k.role("load").body(|| elect(|| {}));
    }
}

pub(super) mod prologue_barrier_once {
    //! All threads of the CTA wait at one prologue barrier. One role calls it, and the builder adds
    //! it to the other roles.

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        k.role("load").body(prologue_barrier);
        k.role("math").body(prologue_barrier);
    }

    pub(crate) fn repaired(k: Builder) {
        k.role("load").body(prologue_barrier);
        k.role("math").body(|| {});
    }
}

pub(super) mod prologue_barrier_place {
    //! Every thread of the CTA runs the prologue barrier once. A loop or `elect` would change
    //! that.

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        k.role("load").body(|| elect(prologue_barrier));
        k.role("math").body(|| {});
    }

    pub(crate) fn repaired(k: Builder) {
        k.role("load").body(|| {
            prologue_barrier();
            elect(|| {});
        });
        k.role("math").body(|| {});
    }
}

pub(super) mod prologue_barrier_cluster {
    //! In a cluster whose CTAs access each other, every CTA first waits until all mbarriers of
    //! the cluster are initialized. The builder emits that cluster barrier, and a CTA barrier
    //! cannot replace it.

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        k.cluster(2, 1, 1);
        let ring = k.ring("ring", 2, |s| s.vector::<u32>(32)).multicast();
        k.role("load").body(|| {
            prologue_barrier();
            elect(|| ring.acquire().commit());
        });
        k.role("math").body(|| ring.wait().release());
    }

    pub(crate) fn repaired(k: Builder) {
        k.cluster(2, 1, 1);
        let ring = k.ring("ring", 2, |s| s.vector::<u32>(32)).multicast();
        k.role("load").body(|| elect(|| ring.acquire().commit()));
        k.role("math").body(|| ring.wait().release());
    }
}

pub(super) mod turn_role {
    //! A turn passes from role to role in the declared order. A role outside that order would
    //! never get it.

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        let turn = k.turn("mainloop", ["consumer0", "consumer1"]);
        k.role("consumer0").body(|| turn.hold(|| {}));
        k.role("other").body(|| turn.hold(|| {}));
    }

    pub(crate) fn repaired(k: Builder) {
        let turn = k.turn("mainloop", ["consumer0", "consumer1"]);
        k.role("consumer0").body(|| turn.hold(|| {}));
        k.role("consumer1").body(|| turn.hold(|| {}));
    }
}

pub(super) mod turn_roles {
    //! A turn lets one role proceed at a time, so it needs at least two roles.

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        let turn = k.turn("mainloop", ["consumer0"]);
        k.role("consumer0").body(|| turn.hold(|| {}));
    }

    pub(crate) fn repaired(k: Builder) {
        let turn = k.turn("mainloop", ["consumer0", "consumer1"]);
        k.role("consumer0").body(|| turn.hold(|| {}));
        k.role("consumer1").body(|| turn.hold(|| {}));
    }
}

pub(super) mod register_of_another_role {
    //! A register belongs to the threads that computed it. Another role runs on other threads.

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        let mut row = None;
        k.role("load").body(|| row = Some(cta_id() * 64));
        k.role("math").body(|| {
            let _next = row.map(|row| row + 1);
        });
    }

    pub(crate) fn repaired(k: Builder) {
        k.role("load").body(|| {
            let _row = cta_id() * 64;
        });
        k.role("math").body(|| {
            let _next = cta_id() * 64 + 1;
        });
    }
}

pub(super) mod register_out_of_scope {
    //! A loop with 0 iterations never assigns the registers of its body.

    use warpline_ir::builder::*;

    pub(crate) fn broken(k: Builder) {
        let n = k.param::<u32>("n");
        k.role("work").body(|| {
            let mut last = None;
            steps(n).each(|i| last = Some(i * 2));
            let _next = last.map(|last| last + 1);
        });
    }

    pub(crate) fn repaired(k: Builder) {
        let n = k.param::<u32>("n");
        k.role("work").body(|| {
            let last = Var::new(0u32);
            steps(n).each(|i| last.set(i * 2));
            let _next = last.get() + 1;
        });
    }
}

pub(super) mod register_of_another_kernel {
    //! Each kernel has its own registers. The register of one kernel is undefined in another one.

    use std::cell::Cell;
    use warpline_ir::builder::*;
    use warpline_ir::{Kernel, Target};

    thread_local! {
        static LEAKED: Cell<Option<Reg<u32>>> = const { Cell::new(None) };
    }

    /// Builds a kernel that leaks a register.
    pub(crate) fn leak_register() {
        let leak = |k: Builder| {
            k.role("work")
                .body(|| LEAKED.with(|cell| cell.set(Some(thread_id()))));
        };
        let built = Kernel::build("leaks", &Target::SM_90A, leak);
        debug_assert!(built.is_ok());
    }

    pub(crate) fn broken(k: Builder) {
        k.role("work").body(|| {
            let _next = LEAKED.with(Cell::get).map(|thread| thread + 1);
        });
    }

    pub(crate) fn repaired(k: Builder) {
        k.role("work").body(|| {
            let _next = thread_id() + 1;
        });
    }
}
