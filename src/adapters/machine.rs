//! What the operating system tells about the machine.

use actors::ports::machine::Machine;
use contract::operators::DiskUsage;
use std::path::PathBuf;

/// The machine, as seen from the data directory.
#[derive(Debug, Clone)]
pub struct ThisMachine {
    pub data: PathBuf,
}

impl Machine for ThisMachine {
    fn name(&self) -> String {
        let name = std::fs::read_to_string("/proc/sys/kernel/hostname");
        let name = name.unwrap_or_else(|_| "localhost".into());
        // Several nodes may run on one machine.
        format!("{}, process {}", name.trim(), std::process::id())
    }

    fn disk(&self) -> Option<DiskUsage> {
        let told = rustix::fs::statvfs(&self.data).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(told.f_frsize);
        // Some of the free blocks are kept for root, so the service counts those that it may use.
        Some(DiskUsage { bytes: bytes(told.f_blocks), free_bytes: bytes(told.f_bavail) })
    }
}
