//! What processes cost: CPU time and memory, read from `/proc` by process id.

use anyhow::{Context, Result};
use std::fs;
use std::time::Duration;

/// Clock ticks a second in `/proc/PID/stat`; Linux promises this to programs whatever the kernel's own rate is.
const TICKS_PER_SECOND: u64 = 100;

/// The processes of one server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Processes {
    pids: Vec<u32>,
}

/// What the processes have used up to now, summed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// CPU time in user and kernel mode.
    pub(crate) cpu: Duration,
    /// Resident memory now.
    pub(crate) resident_bytes: u64,
    /// Most resident memory since the last [`Processes::reset_peak`].
    pub(crate) peak_bytes: u64,
}

impl Processes {
    /// These processes.
    pub(crate) fn new(pids: Vec<u32>) -> Processes {
        Processes { pids }
    }

    /// This process itself.
    pub(crate) fn own() -> Processes {
        Processes { pids: vec![std::process::id()] }
    }

    /// Whether there is any to look at.
    pub(crate) fn is_empty(&self) -> bool {
        self.pids.is_empty()
    }

    /// What they have used.
    ///
    /// # Errors
    /// When one of them has ended.
    pub(crate) fn usage(&self) -> Result<Usage> {
        let mut sum = Usage::default();
        for pid in &self.pids {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
            let stat = stat.with_context(|| format!("process {pid} has ended"))?;
            let status = fs::read_to_string(format!("/proc/{pid}/status"));
            let status = status.with_context(|| format!("process {pid} has ended"))?;
            sum.cpu += cpu_time(&stat).with_context(|| format!("/proc/{pid}/stat is not understood"))?;
            sum.resident_bytes += kilobytes(&status, "VmRSS:") * 1024;
            sum.peak_bytes += kilobytes(&status, "VmHWM:") * 1024;
        }
        Ok(sum)
    }

    /// Makes the present memory the peak. Processes of other users keep theirs.
    pub(crate) fn reset_peak(&self) {
        for pid in &self.pids {
            // 5 is the request to reset the peak; refused for other users' processes, whose peak then stays what it was
            let _ = fs::write(format!("/proc/{pid}/clear_refs"), "5");
        }
    }
}

/// User and system time: the 14th and 15th field, counted behind the name, which may hold blanks and parentheses.
fn cpu_time(stat: &str) -> Option<Duration> {
    let (_, behind_name) = stat.rsplit_once(')')?;
    let mut fields = behind_name.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(Duration::from_millis((user + system) * 1000 / TICKS_PER_SECOND))
}

fn kilobytes(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_ascii_whitespace().next()?.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let stat = "42 (a) b) S 1 42 42 0 -1 4194560 900 0 0 0 150 25 0 0 20 0 8 0 1 2 3";
        assert_eq!(cpu_time(stat), Some(Duration::from_millis(1750)));
        assert_eq!(cpu_time("42 (a"), None);
        assert_eq!(kilobytes("Name:\tx\nVmHWM:\t  2048 kB\nVmRSS:\t  1024 kB\n", "VmRSS:"), 1024);
    }

    #[test]
    fn this_process_has_memory_and_an_ended_one_is_an_error() {
        let usage = Processes::own().usage().unwrap();
        assert!(usage.resident_bytes > 0 && usage.peak_bytes >= usage.resident_bytes);
        assert!(Processes::new(vec![u32::MAX]).usage().is_err());
    }
}
