//! Checks whether the processors kept up: a run in which packets waited for a processor did not measure queues.

use std::fs;

use super::{Context, Failure};

/// The minimum idle share of a processor in a second: below it, work was waiting for the processor.
const LEAST_IDLE: f64 = 0.02;
/// The longest acceptable delay of a wake-up of the agent.
const MOST_LATE_NS: u64 = 5_000_000;

/// Observes the processors during a run.
pub struct Load {
    /// Idle time of each processor at the last call, in the kernel's ticks of 10 ms.
    idle: Vec<u64>,
    looked_ns: u64,
    busy_seconds: u32,
    latest_ns: u64,
}

impl Load {
    /// Starts observing.
    ///
    /// # Errors
    /// /proc/stat cannot be read.
    pub fn begin(now_ns: u64) -> Result<Self, Failure> {
        Ok(Self {
            idle: idle_ticks()?,
            looked_ns: now_ns,
            busy_seconds: 0,
            latest_ns: 0,
        })
    }

    /// Checks the last second.
    ///
    /// # Errors
    /// As [`Load::begin`].
    pub fn look(&mut self, now_ns: u64) -> Result<(), Failure> {
        let idle = idle_ticks()?;
        let span = now_ns.saturating_sub(self.looked_ns) as f64;
        let least = idle
            .iter()
            .zip(&self.idle)
            .map(|(now, before)| now.saturating_sub(*before) as f64 * 1e7 / span)
            .fold(f64::INFINITY, f64::min);
        self.busy_seconds += u32::from(least < LEAST_IDLE);
        (self.idle, self.looked_ns) = (idle, now_ns);
        Ok(())
    }

    /// Notes that the agent woke up this much too late.
    pub fn woke_late(&mut self, late_ns: u64) {
        self.latest_ns = self.latest_ns.max(late_ns);
    }

    /// The problems found. `queues`: whether the kernel's queues are measured, whose packets wait for any processor.
    pub fn faults(&self, queues: bool) -> Vec<String> {
        let mut faults = Vec::new();
        if queues && self.busy_seconds > 0 {
            let seconds = self.busy_seconds;
            faults.push(format!(
                "a processor was saturated in {seconds} of the run's seconds: packets waited for it"
            ));
        }
        if self.latest_ns > MOST_LATE_NS {
            let late_ms = self.latest_ns as f64 / 1e6;
            faults.push(format!(
                "the agent woke up to {late_ms:.1} ms late: work was waiting for a processor"
            ));
        }
        faults
    }
}

fn idle_ticks() -> Result<Vec<u64>, Failure> {
    let text = fs::read_to_string("/proc/stat").context(|| "reading /proc/stat".into())?;
    Ok(parse(&text))
}

/// The fourth number of each processor's line (proc_stat(5)).
fn parse(text: &str) -> Vec<u64> {
    text.lines()
        .filter(|line| line.starts_with("cpu") && !line.starts_with("cpu "))
        .filter_map(|line| line.split_whitespace().nth(4)?.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_is_that_of_each_processor() {
        let text = "cpu  9 9 9 200 0\ncpu0 5 0 3 120 1\ncpu1 4 9 6 80 0\nintr 1 2 3 4 5\n";
        assert_eq!(parse(text), [120, 80]);
    }
}
