//! Results as a picture: for each row two bars on a logarithmic scale, operations a second and CPU time of one.

use crate::report::{Report, Row, number};
use std::fmt::Write as _;

const COLOURS: [&str; 2] = ["#2f6f9f", "#d08a3c"];
const LABEL_WIDTH: f64 = 300.0;
const PANEL_WIDTH: f64 = 330.0;
/// Room behind the longest bar, for its number.
const NUMBER_WIDTH: f64 = 60.0;
const BAR_HEIGHT: f64 = 13.0;
const GROUP_GAP: f64 = 8.0;
const TOP: f64 = 62.0;

/// What a panel shows of a row.
type Quantity = fn(&Row) -> Option<f64>;

/// Draws a report.
pub(crate) fn svg(report: &Report) -> String {
    let servers = servers(report);
    let groups = groups(report);
    let height = TOP + groups.iter().map(|rows| rows.len() as f64 * BAR_HEIGHT + GROUP_GAP).sum::<f64>() + 10.0;
    let width = LABEL_WIDTH + 2.0 * PANEL_WIDTH + 10.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" \
         font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    for (idx, server) in servers.iter().enumerate() {
        let x = LABEL_WIDTH + 200.0 * idx as f64;
        bar(&mut out, x, 12.0, 12.0, idx);
        text(&mut out, x + 18.0, 22.0, "start", server);
    }
    let panels: [(&str, Quantity); 2] = [
        ("operations a second", |row| Some(row.per_second)),
        ("CPU time of the server for one, us", |row| row.cpu_us_each),
    ];
    for (panel, (title, value)) in panels.iter().enumerate() {
        let left = LABEL_WIDTH + PANEL_WIDTH * panel as f64;
        text(&mut out, left, TOP - 14.0, "start", title);
        let values = || report.rows.iter().filter_map(value).filter(|value| *value > 0.0);
        let scale = Scale::of(values());
        let mut y = TOP;
        for rows in &groups {
            if let (0, Some(row)) = (panel, rows.first()) {
                let label = format!("{} {}", row.scenario, row.scale);
                text(&mut out, LABEL_WIDTH - 8.0, y + BAR_HEIGHT, "end", label.trim());
            }
            for row in *rows {
                if let Some(value) = value(row).filter(|value| *value > 0.0) {
                    let length = scale.length(value) * (PANEL_WIDTH - NUMBER_WIDTH);
                    bar(&mut out, left, y, length, servers.iter().position(|s| *s == row.server).unwrap_or_default());
                    text(&mut out, left + length + 4.0, y + BAR_HEIGHT - 3.0, "start", &number(value));
                }
                y += BAR_HEIGHT;
            }
            y += GROUP_GAP;
        }
    }
    out.push_str("</svg>\n");
    out
}

/// From one power of ten to another.
struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    fn of(values: impl Iterator<Item = f64>) -> Scale {
        let (low, high) = values.fold((f64::MAX, f64::MIN_POSITIVE), |(low, high), v| (low.min(v), high.max(v)));
        Scale { low: low.log10().floor(), high: high.log10().max(low.log10().floor() + 1.0) }
    }

    /// Zero at the low end, one at the high end.
    fn length(&self, value: f64) -> f64 {
        ((value.log10() - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }
}

fn servers(report: &Report) -> Vec<&str> {
    let mut servers: Vec<&str> = Vec::new();
    for row in &report.rows {
        if !servers.contains(&row.server.as_str()) {
            servers.push(&row.server);
        }
    }
    servers
}

/// Rows of the same scenario and scale, which follow each other.
fn groups(report: &Report) -> Vec<&[Row]> {
    report.rows.chunk_by(|a, b| (&a.scenario, &a.scale) == (&b.scenario, &b.scale)).collect()
}

fn bar(out: &mut String, x: f64, y: f64, length: f64, server: usize) {
    let colour = COLOURS[server % COLOURS.len()];
    let height = BAR_HEIGHT - 2.0;
    // writing to a string does not fail
    let _ =
        writeln!(out, "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{length:.1}\" height=\"{height}\" fill=\"{colour}\"/>");
}

fn text(out: &mut String, x: f64, y: f64, anchor: &str, text: &str) {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_covers_all_values() {
        let scale = Scale::of([3.0, 50.0, 7000.0].into_iter());
        assert!(scale.length(3.0) > 0.0 && scale.length(3.0) < scale.length(50.0));
        assert!((scale.length(7000.0) - 1.0).abs() < 1e-9);
        assert!(Scale::of([5.0].into_iter()).length(5.0) > 0.0);
    }

    #[test]
    fn names_cannot_break_out_of_the_picture() {
        let mut out = String::new();
        text(&mut out, 0.0, 0.0, "start", "<script>&");
        assert!(out.contains("&lt;script>&amp;"));
    }
}
