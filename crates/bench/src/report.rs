//! Results: rounds summed into rows, two servers compared, and all of it as a table or JSON.

use crate::process::Usage;
use crate::tally::Round;
use serde::Serialize;
use std::fmt::Write as _;
use std::time::Duration;

/// One round with what it cost.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) round: Round,
    /// CPU time of the server in the round, and its memory at the end of it; `None` when its processes are not known.
    pub(crate) server: Option<Usage>,
    /// CPU time of the generator in the round.
    pub(crate) own_cpu: Duration,
    /// From the round's begin to its end, as the generator's share needs it.
    pub(crate) wall: Duration,
}

/// All rounds of one scenario on one server.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) scenario: String,
    /// What the scenario was repeated for: `64 clients`.
    pub(crate) scale: String,
    pub(crate) server: String,
    pub(crate) unit: &'static str,
    pub(crate) operations: u64,
    pub(crate) seconds: f64,
    pub(crate) per_second: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p90_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) max_ms: f64,
    pub(crate) errors: u64,
    pub(crate) error_kinds: Vec<ErrorKind>,
    /// CPU time of the server for one operation.
    pub(crate) cpu_us_each: Option<f64>,
    /// CPU seconds of the server a second.
    pub(crate) cores: Option<f64>,
    pub(crate) resident_mb: Option<f64>,
    pub(crate) peak_mb: Option<f64>,
    /// CPU seconds of the generator a second.
    pub(crate) own_cores: f64,
    /// The generator's share of the CPU time of both.
    pub(crate) own_share: Option<f64>,
    /// What only this scenario tells, averaged over the rounds.
    pub(crate) figures: Vec<Figure>,
    #[serde(skip)]
    rounds: Vec<(f64, Option<f64>)>,
}

/// Errors of one kind.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ErrorKind {
    pub(crate) kind: String,
    pub(crate) n: u64,
    pub(crate) first: String,
}

/// A number with a name.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figure {
    pub(crate) name: &'static str,
    pub(crate) value: f64,
}

impl Row {
    /// Sums up rounds.
    pub(crate) fn new(scenario: &str, scale: &str, server: &str, unit: &'static str, rounds: &[Measured]) -> Row {
        let mut sum = Round::default();
        let (mut seconds, mut server_cpu, mut own_cpu, mut wall) = (0.0, Some(0.0), 0.0, 0.0);
        let mut figures: Vec<Figure> = Vec::new();
        let (mut resident_mb, mut peak_mb): (Option<f64>, Option<f64>) = (None, None);
        for measured in rounds {
            sum.merge(&measured.round);
            seconds += measured.round.elapsed.as_secs_f64();
            own_cpu += measured.own_cpu.as_secs_f64();
            wall += measured.wall.as_secs_f64();
            server_cpu = server_cpu.zip(measured.server).map(|(sum, usage)| sum + usage.cpu.as_secs_f64());
            if let Some(usage) = measured.server {
                resident_mb = Some(usage.resident_bytes as f64 / 1e6);
                peak_mb = Some(peak_mb.unwrap_or_default().max(usage.peak_bytes as f64 / 1e6));
            }
            for (name, value) in &measured.round.figures {
                let share = value / rounds.len() as f64;
                match figures.iter_mut().find(|figure| figure.name == *name) {
                    Some(figure) => figure.value += share,
                    None => figures.push(Figure { name, value: share }),
                }
            }
        }
        let n = sum.n_operations;
        let per = |value: f64, by: f64| if by > 0.0 { value / by } else { 0.0 };
        let ms = |per_mille| sum.latency.quantile(per_mille).as_secs_f64() * 1e3;
        let of_round = |measured: &Measured| {
            let (n, seconds) = (measured.round.n_operations as f64, measured.round.elapsed.as_secs_f64());
            (per(n, seconds), measured.server.map(|usage| per(usage.cpu.as_secs_f64() * 1e6, n)))
        };
        Row {
            scenario: scenario.to_owned(),
            scale: scale.to_owned(),
            server: server.to_owned(),
            unit,
            operations: n,
            seconds,
            per_second: per(n as f64, seconds),
            p50_ms: ms(500),
            p90_ms: ms(900),
            p99_ms: ms(990),
            max_ms: sum.latency.max().as_secs_f64() * 1e3,
            errors: sum.faults.n(),
            error_kinds: sum
                .faults
                .iter()
                .map(|(kind, n, first)| ErrorKind { kind: kind.to_owned(), n, first: first.to_owned() })
                .collect(),
            cpu_us_each: server_cpu.map(|cpu| per(cpu * 1e6, n as f64)),
            cores: server_cpu.map(|cpu| per(cpu, wall)),
            resident_mb,
            peak_mb,
            own_cores: per(own_cpu, wall),
            own_share: server_cpu.map(|cpu| per(own_cpu, own_cpu + cpu)),
            figures,
            rounds: rounds.iter().map(of_round).collect(),
        }
    }
}

/// How two servers did in the same rounds.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Comparison {
    pub(crate) scenario: String,
    pub(crate) scale: String,
    pub(crate) first: String,
    pub(crate) second: String,
    /// Throughput of the first over that of the second.
    pub(crate) throughput: Option<Ratio>,
    /// CPU time for one operation of the first over that of the second.
    pub(crate) cpu: Option<Ratio>,
}

/// A ratio with its spread over the rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Ratio {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Ratio {
    /// Of pairs of values; `None` when none of them has a ratio.
    fn of(pairs: impl Iterator<Item = (f64, f64)>) -> Option<Ratio> {
        let mut ratios: Vec<f64> = pairs.filter(|(a, b)| *a > 0.0 && *b > 0.0).map(|(a, b)| a / b).collect();
        ratios.sort_by(f64::total_cmp);
        let n = ratios.len();
        let (min, max) = (*ratios.first()?, *ratios.last()?);
        let median = f64::midpoint(ratios[n / 2], ratios[(n - 1) / 2]);
        Some(Ratio { median, min, max })
    }
}

impl Comparison {
    /// Of two rows of the same scenario, whose rounds were measured in turns.
    pub(crate) fn new(first: &Row, second: &Row) -> Comparison {
        let pairs = || first.rounds.iter().zip(&second.rounds);
        Comparison {
            scenario: first.scenario.clone(),
            scale: first.scale.clone(),
            first: first.server.clone(),
            second: second.server.clone(),
            throughput: Ratio::of(pairs().map(|(a, b)| (a.0, b.0))),
            cpu: Ratio::of(pairs().filter_map(|(a, b)| Some((a.1?, b.1?)))),
        }
    }
}

/// Everything that was measured.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Report {
    pub(crate) cpus: usize,
    pub(crate) seed: u64,
    pub(crate) seconds: f64,
    pub(crate) rounds: usize,
    pub(crate) rows: Vec<Row>,
    pub(crate) comparisons: Vec<Comparison>,
}

const COLUMNS: [&str; 14] = [
    "scenario",
    "scale",
    "server",
    "ops",
    "per s",
    "p50 ms",
    "p90 ms",
    "p99 ms",
    "max ms",
    "errors",
    "CPU us/op",
    "cores",
    "peak MB",
    "bench cores",
];

impl Report {
    /// As text for a terminal.
    pub(crate) fn table(&self) -> String {
        let mut lines = vec![COLUMNS.map(str::to_owned).to_vec()];
        lines.extend(self.rows.iter().map(cells));
        let mut out = aligned(&lines);
        for row in &self.rows {
            let place = format!("{} {} {}", row.scenario, row.scale, row.server);
            if !row.figures.is_empty() {
                let figures: Vec<String> =
                    row.figures.iter().map(|figure| format!("{} {}", number(figure.value), figure.name)).collect();
                // writing to a string does not fail
                let _ = writeln!(out, "  {place}: {}", figures.join(", "));
            }
            for error in &row.error_kinds {
                let _ = writeln!(out, "  {place}: {} x {}: {}", error.n, error.kind, error.first);
            }
        }
        if !self.comparisons.is_empty() {
            let head = ["scenario", "scale", "throughput", "(min to max)", "CPU/op", "(min to max)"];
            let mut lines = vec![head.map(str::to_owned).to_vec()];
            lines.extend(self.comparisons.iter().map(|comparison| {
                let mut line = vec![comparison.scenario.clone(), comparison.scale.clone()];
                for ratio in [comparison.throughput, comparison.cpu] {
                    line.push(ratio.map_or_else(dash, |ratio| format!("{}x", number(ratio.median))));
                    line.push(ratio.map_or_else(dash, |r| format!("{} to {}", number(r.min), number(r.max))));
                }
                line
            }));
            let _ = writeln!(out, "\n{} over {}:", self.comparisons[0].first, self.comparisons[0].second);
            out.push_str(&aligned(&lines));
        }
        out
    }
}

fn dash() -> String {
    "-".to_owned()
}

fn cells(row: &Row) -> Vec<String> {
    let optional = |value: Option<f64>| value.map_or_else(dash, number);
    let latency = |ms: f64| if ms > 0.0 { number(ms) } else { dash() };
    vec![
        row.scenario.clone(),
        row.scale.clone(),
        row.server.clone(),
        row.operations.to_string(),
        number(row.per_second),
        latency(row.p50_ms),
        latency(row.p90_ms),
        latency(row.p99_ms),
        latency(row.max_ms),
        row.errors.to_string(),
        optional(row.cpu_us_each),
        optional(row.cores),
        optional(row.peak_mb),
        number(row.own_cores),
    ]
}

/// Three digits that count.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 1.0 => format!("{value:.2}"),
        0.0 => "0".to_owned(),
        _ => format!("{value:.3}"),
    }
}

/// Text to the left, numbers to the right.
fn aligned(lines: &[Vec<String>]) -> String {
    /// Columns of text.
    const TEXTS: usize = 2;
    let n_columns = lines.first().map_or(0, Vec::len);
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..n_columns).map(width).collect();
    let mut out = String::new();
    for line in lines {
        let mut text = String::new();
        for (column, (cell, width)) in line.iter().zip(&widths).enumerate() {
            let is_text = column < TEXTS || lines[0][column] == "server";
            let _ = if is_text { write!(text, "{cell:<width$}  ") } else { write!(text, "{cell:>width$}  ") };
        }
        out.push_str(text.trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::Fault;
    use expect_test::expect;

    fn measured(n: u64, cpu_ms: u64, faults: u64) -> Measured {
        let mut round = Round { elapsed: Duration::from_secs(2), ..Round::default() };
        for _ in 0..n {
            round.count(Ok(100), Duration::from_millis(4));
        }
        round.figures.push(("MB each", 5.0));
        if faults > 0 {
            round.faults.add_many(Fault::new("409", "conflict"), faults);
        }
        let server = Usage { cpu: Duration::from_millis(cpu_ms), resident_bytes: 20_000_000, peak_bytes: 30_000_000 };
        Measured { round, server: Some(server), own_cpu: Duration::from_millis(500), wall: Duration::from_secs(2) }
    }

    #[test]
    fn a_table_sums_rounds_and_shows_the_spread_of_the_ratio() {
        let fast = Row::new("get-pods", "4 clients", "a", "requests", &[measured(400, 100, 0), measured(600, 100, 0)]);
        let slow = Row::new("get-pods", "4 clients", "b", "requests", &[measured(100, 200, 3), measured(200, 200, 0)]);
        let comparisons = vec![Comparison::new(&fast, &slow)];
        let report = Report { rows: vec![fast, slow], comparisons, ..Report::default() };
        expect![[r#"
            scenario  scale      server   ops  per s  p50 ms  p90 ms  p99 ms  max ms  errors  CPU us/op  cores  peak MB  bench cores
            get-pods  4 clients  a       1000    250    4.00    4.00    4.00    4.00       0        200  0.050     30.0        0.250
            get-pods  4 clients  b        300   75.0    4.00    4.00    4.00    4.00       3       1333  0.100     30.0        0.250
              get-pods 4 clients a: 5.00 MB each
              get-pods 4 clients b: 5.00 MB each
              get-pods 4 clients b: 3 x 409: conflict

            a over b:
            scenario  scale      throughput  (min to max)  CPU/op    (min to max)
            get-pods  4 clients       3.50x  3.00 to 4.00  0.146x  0.125 to 0.167
        "#]]
        .assert_eq(&report.table());
    }

    #[test]
    fn nothing_measured_has_no_ratio() {
        let empty = Row::new("x", "", "a", "requests", &[measured(0, 10, 1)]);
        let comparison = Comparison::new(&empty, &empty);
        assert_eq!((comparison.throughput, comparison.cpu), (None, None));
        assert_eq!(empty.per_second, 0.0);
    }
}
