//! Where ops work, kept by stream.

use crate::errors::exception;
use crate::torch;
use pyo3::prelude::*;
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};
use warpline::cuda::Stream;

/// The least that is allocated.
const LEAST: u64 = 4096;

/// The workspaces of each device and stream.
type Kept = HashMap<(u32, usize), Vec<Zeros>>;

/// A tensor of torch's, its bytes and its address.
type Zeros = (Py<PyAny>, u64, u64);

/// By device and stream: what runs in a stream runs in order, and leaves zeros.
/// The last is the longest; shorter ones stay, as they may still be worked in.
static KEPT: LazyLock<Mutex<Kept>> = LazyLock::new(Mutex::default);

/// A workspace, which must live until the launch is in the stream: torch gives
/// its memory to later work of that stream alone.
pub(crate) struct Workspace {
    pub(crate) address: u64,
    _tensor: Option<Py<PyAny>>,
}

/// Zeros for an op that is about to be put into torch's current stream. In a
/// capture they belong to the graph, which sets them to zero in each replay.
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
    let kept = |address| Workspace {
        address,
        _tensor: None,
    };
    let enough = |all: Option<&Vec<Zeros>>| {
        let last = all.and_then(|all| all.last());
        last.filter(|(_, len, _)| *len >= bytes).map(|z| z.2)
    };
    let known = enough(
        KEPT.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&key),
    );
    if let Some(address) = known {
        return Ok(kept(address));
    }
    // Torch is called without the lock.
    let len = bytes.max(LEAST);
    let tensor = torch::zeros(py, len, device)?;
    let address = torch::address(&tensor)?;
    let mut all = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let all = all.entry(key).or_default();
    // Another thread may have been first.
    Ok(kept(enough(Some(all)).unwrap_or_else(|| {
        all.push((tensor.unbind(), len, address));
        address
    })))
}
