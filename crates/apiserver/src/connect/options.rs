//! The options of logs and streams, from queries.

use crate::options::Params;
use pintle_apimachinery::field::{FieldError, Path};
use pintle_apimachinery::status::Result;
use pintle_apimachinery::{ErrorList, GroupKind, Status, time};

/// What of a container's log is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LogOptions {
    pub(super) container: String,
    pub(super) follow: bool,
    previous: bool,
    timestamps: bool,
    since_seconds: Option<i64>,
    since_time: Option<String>,
    tail_lines: Option<i64>,
    limit_bytes: Option<i64>,
    stream: String,
}

impl LogOptions {
    /// Reads and checks a query about the pod `name`.
    pub(super) fn read(query: &str, name: &str) -> Result<LogOptions> {
        let params = Params::of(query);
        let text = |key: &str| params.get(key).unwrap_or_default().to_owned();
        let flag = |key: &str| params.flag(key).unwrap_or_default();
        let since_time = match params.get("sinceTime").filter(|text| !text.is_empty()) {
            None => None,
            Some(text) => {
                let at = time::parse_time(text).ok_or_else(|| bad_time(text))?;
                Some(time::format_time(at).to_string())
            }
        };
        let stream = text("stream");
        let options = LogOptions {
            container: text("container"),
            follow: flag("follow"),
            previous: flag("previous"),
            timestamps: flag("timestamps"),
            since_seconds: params.int("sinceSeconds")?,
            since_time,
            tail_lines: params.int("tailLines")?,
            limit_bytes: params.int("limitBytes")?,
            stream: if stream.is_empty() { "All".to_owned() } else { stream },
        };
        let errors = options.errors();
        if errors.is_empty() {
            return Ok(options);
        }
        Err(Box::new(Status::invalid(&GroupKind::new("", "PodLogOptions"), name, &errors)))
    }

    fn errors(&self) -> ErrorList {
        let mut errors = ErrorList::new();
        if let Some(n) = self.tail_lines.filter(|n| *n < 0) {
            errors.push(FieldError::invalid(&Path::new("tailLines"), n, "must be greater than or equal to 0"));
        }
        if let Some(n) = self.limit_bytes.filter(|n| *n < 1) {
            errors.push(FieldError::invalid(&Path::new("limitBytes"), n, "must be greater than 0"));
        }
        match (self.since_seconds, &self.since_time) {
            (Some(_), Some(_)) => {
                let why = "at most one of `sinceTime` or `sinceSeconds` may be specified";
                errors.push(FieldError::forbidden(&Path::new("[]"), why));
            }
            (Some(n), None) if n < 1 => {
                errors.push(FieldError::invalid(&Path::new("sinceSeconds"), n, "must be greater than 0"));
            }
            (Some(_) | None, _) => {}
        }
        let streams = ["All", "Stderr", "Stdout"];
        if !streams.contains(&self.stream.as_str()) {
            errors.push(FieldError::not_supported(&Path::new("stream"), self.stream.as_str(), &streams));
        }
        if self.stream != "All" && self.tail_lines.is_some() {
            let why = "`tailLines` and specific `stream` are mutually exclusive for now";
            errors.push(FieldError::forbidden(&Path::new("[]"), why));
        }
        errors
    }

    /// The query for the node's agent.
    pub(super) fn to_query(&self) -> String {
        let mut query = Query::default();
        for (key, is_set) in [("follow", self.follow), ("previous", self.previous), ("timestamps", self.timestamps)] {
            if is_set {
                query.push(key, "true");
            }
        }
        let numbers =
            [("sinceSeconds", self.since_seconds), ("tailLines", self.tail_lines), ("limitBytes", self.limit_bytes)];
        for (key, number) in numbers {
            if let Some(number) = number {
                query.push(key, &number.to_string());
            }
        }
        if let Some(time) = &self.since_time {
            query.push("sinceTime", time);
        }
        query.push("stream", &self.stream);
        query.text
    }
}

fn bad_time(text: &str) -> Box<Status> {
    let quoted = pintle_apimachinery::field::go_quote(text);
    let layout = "\"2006-01-02T15:04:05Z07:00\"";
    Box::new(Status::bad_request(format!("parsing time {quoted} as {layout}: cannot parse {quoted} as \"2006\"")))
}

/// What is to be attached to, or executed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct StreamOptions {
    pub(super) container: String,
    streams: [bool; 4],
    command: Vec<String>,
}

/// The streams in a request to the server, and in one to a node's agent.
const STREAMS: [(&str, &str); 4] = [("stdin", "input"), ("stdout", "output"), ("stderr", "error"), ("tty", "tty")];

impl StreamOptions {
    pub(super) fn read(query: &str) -> StreamOptions {
        let params = Params::of(query);
        StreamOptions {
            container: params.get("container").unwrap_or_default().to_owned(),
            streams: STREAMS.map(|(key, _)| params.flag(key).unwrap_or_default()),
            command: params.all("command").map(str::to_owned).collect(),
        }
    }

    /// The query for the node's agent.
    pub(super) fn to_query(&self) -> String {
        let mut query = Query::default();
        for ((_, key), is_set) in STREAMS.iter().zip(self.streams) {
            if is_set {
                query.push(key, "1");
            }
        }
        for word in &self.command {
            query.push("command", word);
        }
        query.text
    }
}

/// A query under construction.
#[derive(Debug, Default)]
struct Query {
    text: String,
}

impl Query {
    fn push(&mut self, key: &str, value: &str) {
        if !self.text.is_empty() {
            self.text.push('&');
        }
        self.text.push_str(key);
        self.text.push('=');
        for byte in value.bytes() {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                self.text.push(char::from(byte));
            } else {
                self.text.push_str(&format!("%{byte:02X}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn logs() {
        let mut out = String::new();
        for query in [
            "",
            "follow=true&tailLines=5&previous=0&timestamps&limitBytes=9&sinceSeconds=3",
            "sinceTime=2026-01-01T00:00:00Z&container=c",
            "tailLines=-1&limitBytes=0&sinceSeconds=0",
            "tailLines=x",
            "sinceTime=yesterday",
            "sinceTime=2026-01-01T00:00:00Z&sinceSeconds=1",
            "stream=Other",
            "stream=Stdout&tailLines=1",
        ] {
            let answer = match LogOptions::read(query, "p") {
                Ok(options) => options.to_query(),
                Err(status) => format!("{} {}", status.code, status.message),
            };
            out.push_str(&format!("{query}\n    {answer}\n"));
        }
        expect![[r#"

                stream=All
            follow=true&tailLines=5&previous=0&timestamps&limitBytes=9&sinceSeconds=3
                follow=true&timestamps=true&sinceSeconds=3&tailLines=5&limitBytes=9&stream=All
            sinceTime=2026-01-01T00:00:00Z&container=c
                sinceTime=2026-01-01T00%3A00%3A00Z&stream=All
            tailLines=-1&limitBytes=0&sinceSeconds=0
                422 PodLogOptions "p" is invalid: [tailLines: Invalid value: -1: must be greater than or equal to 0, limitBytes: Invalid value: 0: must be greater than 0, sinceSeconds: Invalid value: 0: must be greater than 0]
            tailLines=x
                400 strconv.ParseInt: parsing "x": invalid syntax
            sinceTime=yesterday
                400 parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"
            sinceTime=2026-01-01T00:00:00Z&sinceSeconds=1
                422 PodLogOptions "p" is invalid: []: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified
            stream=Other
                422 PodLogOptions "p" is invalid: stream: Unsupported value: "Other": supported values: "All", "Stderr", "Stdout"
            stream=Stdout&tailLines=1
                422 PodLogOptions "p" is invalid: []: Forbidden: `tailLines` and specific `stream` are mutually exclusive for now
        "#]].assert_eq(&out);
    }

    #[test]
    fn streams() {
        let options = StreamOptions::read("stdin=true&stdout=1&tty=false&command=sh&command=-c&command=echo%20a%26b");
        assert_eq!(options.to_query(), "input=1&output=1&command=sh&command=-c&command=echo%20a%26b");
    }
}
