//! Workspaces of ops, cached by stream.

use crate::errors::exception;
use crate::torch;
use pyo3::prelude::*;
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};
use warpline::cuda::Stream;

/// The minimum allocation.
const MIN_BYTES: u64 = 4096;

/// The workspaces of each device and stream.
type WorkspaceMap = HashMap<(u32, usize), Vec<ZeroedTensor>>;

/// A torch tensor, its size in bytes and its address.
type ZeroedTensor = (Py<PyAny>, u64, u64);

/// Workspaces by device and stream. Ops of a stream run in order and leave the workspace
/// zeroed. The last workspace is the largest; smaller ones stay alive for ops that are still running.
static WORKSPACES: LazyLock<Mutex<WorkspaceMap>> = LazyLock::new(Mutex::default);

/// A workspace. It must live until the op is launched; afterwards torch reuses its memory only for
/// later work of the same stream.
pub(crate) struct Workspace {
    pub(crate) address: u64,
    _tensor: Option<Py<PyAny>>,
}

/// Returns a zeroed workspace for an op on torch's current stream. In a capture it belongs to the
/// graph, which zeroes it in every replay.
pub(crate) fn workspace(
    py: Python<'_>,
    bytes: u64,
    device: u32,
    stream: &Stream,
) -> PyResult<Workspace> {
    if bytes == 0 {
        return Ok(Workspace {
            address: 0,
            _tensor: None,
        });
    }
    let capturing = stream.is_capturing();
    if capturing.map_err(|e| exception(py, &e.into()))? {
        let tensor = torch::zeros(py, bytes, device)?;
        return Ok(Workspace {
            address: torch::address(&tensor)?,
            _tensor: Some(tensor.unbind()),
        });
    }
    let key = (device, stream.handle() as usize);
    let cached = |address| Workspace {
        address,
        _tensor: None,
    };
    let find_large_enough = |all: Option<&Vec<ZeroedTensor>>| {
        let last = all.and_then(|all| all.last());
        last.filter(|(_, len, _)| *len >= bytes).map(|z| z.2)
    };
    let found = find_large_enough(
        WORKSPACES
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&key),
    );
    if let Some(address) = found {
        return Ok(cached(address));
    }
    // Do not hold the lock while torch allocates.
    let len = bytes.max(MIN_BYTES);
    let tensor = torch::zeros(py, len, device)?;
    let address = torch::address(&tensor)?;
    let mut all = WORKSPACES.lock().unwrap_or_else(PoisonError::into_inner);
    let all = all.entry(key).or_default();
    // Another thread may have added a workspace while this one allocated.
    Ok(cached(find_large_enough(Some(all)).unwrap_or_else(|| {
        all.push((tensor.unbind(), len, address));
        address
    })))
}
