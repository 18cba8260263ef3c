//! Prints the windows of every flow over time: `trace_flow FILE [KEY=VALUE …]`.
use std::path::Path;
fn main() {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().expect("an experiment file");
    let overrides: Vec<(String, String)> = arguments
        .filter_map(|set| {
            set.split_once('=')
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
        })
        .collect();
    let names = sojourn_sim::names();
    let plan = sojourn_experiment::read_file(Path::new(&file), &overrides, &names).unwrap();
    let e = &plan.cells[0].experiment;
    let r = sojourn_sim::run(
        e,
        0,
        e.seed,
        &sojourn_sim::catalogue(),
        &sojourn_sim::Monitor::new(),
    )
    .unwrap();
    let q = r.queue_series.unwrap();
    let f = r.flow_series.unwrap();
    let col = |t: &sojourn_sim::result::Table, n: &str| -> Vec<f64> {
        match &t.columns.iter().find(|(k, _)| *k == n).unwrap().1 {
            sojourn_sim::result::Column::F64(v) => v.clone(),
            sojourn_sim::result::Column::U64(v) => v.iter().map(|x| *x as f64).collect(),
            sojourn_sim::result::Column::U32(v) => v.iter().map(|x| f64::from(*x)).collect(),
            sojourn_sim::result::Column::U8(v) => v.iter().map(|x| f64::from(*x)).collect(),
        }
    };
    let (t, s, d) = (
        col(&q, "time_s"),
        col(&q, "sojourn_mean_ms"),
        col(&q, "dropped"),
    );
    let st: Vec<_> = q
        .columns
        .iter()
        .skip(9)
        .map(|(n, _)| (*n, col(&q, n)))
        .collect();
    let c = col(&f, "cwnd_segments");
    let n = c.len() / t.len();
    for i in 0..t.len() {
        let state: Vec<_> = st.iter().map(|(n, v)| format!("{n} {:.5}", v[i])).collect();
        println!(
            "{:.2} {:.3} drops {} {} cwnd {:?}",
            t[i],
            s[i],
            d[i],
            state.join(" "),
            &c[i * n..(i + 1) * n]
        );
    }
}
