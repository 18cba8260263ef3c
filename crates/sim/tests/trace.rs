//! A link that follows a packet-delivery trace.

mod common;

use std::path::PathBuf;

/// Ten delivery opportunities in 10 ms, nine of them in the first half: 12 Mbit/s of full packets on average.
const TRACE: &str = "1\n1\n2\n2\n3\n3\n4\n4\n5\n10\n";

#[test]
fn bulk_traffic_fills_a_trace_and_no_more() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("sim-trace");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("bursts.trace"), TRACE).unwrap();
    let text = "
experiment = { duration = '20 s', warmup = '5 s' }
link = { rate = { trace = 'bursts.trace' }, buffer = '2 bdp' }
queue = [{ aqm = 'pfifo' }, { aqm = 'codel' }]
traffic = [{ kind = 'bulk', flows = 2, rtt = '40 ms' }]
";
    std::fs::write(folder.join("load.toml"), text).unwrap();
    let runs = common::file(&folder.join("load.toml"));
    std::fs::remove_dir_all(&folder).unwrap();
    for run in &runs {
        let down = &run.bottleneck["down"];
        assert!(
            (0.95..=1.0).contains(&down.utilization),
            "{}: {}",
            run.queue,
            down.utilization
        );
        // 2000 rounds of ten packets.
        assert!(down.delivered_packets <= 20_000);
    }
    // Two BDPs at the mean rate: 2 · 12 Mbit/s · 40 ms / 1514 bytes are 79 packets, 79 ms of the trace.
    let longest = runs[0].bottleneck["down"].sojourn_ms.max.unwrap();
    assert!((70.0..=85.0).contains(&longest), "{longest}");
}
