//! The same download by Sojourn's TCP, for comparison.

use std::time::Duration;

use sojourn_experiment::{Source, read};

/// What the queue did to it.
pub struct Download {
    pub goodput_mbps: f64,
    pub p50_ms: f64,
    pub p95_ms: f64,
    pub marked: u64,
    pub dropped: u64,
    pub lost: u64,
}

/// One download over 20 Mbit/s and 40 ms under CUBIC with ECN.
pub fn download(
    aqm: &str,
    keys: &[(&str, &str)],
    impaired: bool,
    length: Duration,
) -> Result<Download, Box<dyn std::error::Error>> {
    let value = |text: &str| if matches!(text, "true" | "false") { text.into() } else { format!("\"{text}\"") };
    let keys: String = keys.iter().map(|(key, given)| format!("{key} = {}\n", value(given))).collect();
    let impairments = if impaired { "loss = 0.001\njitter = \"3 ms\"\n" } else { "" };
    let text = format!(
        "[experiment]\nduration = \"{} s\"\n[link]\nrate = \"20 Mbit/s\"\n{impairments}[[queue]]\naqm = \"{aqm}\"\n\
         {keys}[[traffic]]\nkind = \"bulk\"\ntcp = \"cubic\"\nrtt = \"40 ms\"\necn = true\n",
        length.as_secs()
    );
    let plan = read(Source { name: "tcp.toml", text: &text }, &[], &sojourn_sim::names())?;
    let spec = plan.specs().next().ok_or("no run")?;
    let result = sojourn_sim::run(spec, &sojourn_sim::catalogue())?;
    let down = &result.bottleneck["down"];
    Ok(Download {
        goodput_mbps: result.flows[0].goodput_bps / 1e6,
        p50_ms: down.sojourn_ms.p50.unwrap_or(f64::NAN),
        p95_ms: down.sojourn_ms.p95.unwrap_or(f64::NAN),
        marked: down.marked,
        dropped: down.dropped_aqm + down.dropped_overflow,
        lost: down.lost_packets.unwrap_or(0),
    })
}
