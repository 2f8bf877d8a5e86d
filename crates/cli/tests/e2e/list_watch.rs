//! Every form in which a list or a watch may be asked for, as transcripts. Versions appear as the write that made them:
//! `a1` is the first version of `a`.

use crate::http::Connection;
use crate::server::{Server, eventually};
use expect_test::{Expect, expect};
use serde_json::Value;
use std::fmt::Write as _;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Events that a transcript shows of one watch, at most.
const N_EVENTS_MAX: usize = 20;

/// A server, and what was written to it.
struct Session {
    server: Server,
    /// Versions and the writes that made them, oldest first.
    writes: Vec<(u64, String)>,
    transcript: String,
}

impl Session {
    fn start(name: &str, flags: &[&str]) -> Session {
        let server = Server::start_with(name, "apiserver", flags);
        Session { server, writes: Vec::new(), transcript: String::new() }
    }

    /// A write, whose version is called `label` from now on.
    fn write(&mut self, label: &str, method: &str, name: &str, body: &str) {
        let path = if method == "POST" { MAPS.to_owned() } else { format!("{MAPS}/{name}") };
        let response = self.server.request(method, &path, body);
        assert!(response.status < 300, "{}", response.text());
        let version = match method {
            // the answer has the object's last version, not that of its end
            "DELETE" => self.server.request("GET", MAPS, "").version(),
            _ => response.version(),
        };
        self.writes.push((version.parse().expect("a number"), label.to_owned()));
    }

    fn create(&mut self, label: &str, name: &str, colour: &str) {
        let labels = format!(r#"{{"colour":"{colour}"}}"#);
        let body =
            format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}","labels":{labels}}}}}"#);
        self.write(label, "POST", name, &body);
    }

    fn paint(&mut self, label: &str, name: &str, colour: &str) {
        self.write(label, "PATCH", name, &format!(r#"{{"metadata":{{"labels":{{"colour":"{colour}"}}}}}}"#));
    }

    fn version(&self, label: &str) -> String {
        let (version, _) = self.writes.iter().find(|(_, known)| known == label).expect("a write");
        version.to_string()
    }

    /// The last write that a version includes.
    fn label(&self, version: &Value) -> String {
        let text = version.as_str().unwrap_or_default();
        let Ok(version) = text.parse::<u64>() else { return format!("{text:?}") };
        self.writes.iter().rfind(|(known, _)| *known <= version).map_or("before all", |(_, label)| label).to_owned()
    }

    /// Puts versions into a query that has labels in angle brackets.
    fn query(&self, query: &str) -> String {
        self.writes.iter().fold(query.to_owned(), |query, (version, label)| {
            query.replace(&format!("<{label}>"), &version.to_string())
        })
    }

    fn plain(&self, text: &str) -> String {
        // where the server's memory begins depends on what it wrote at its start
        let text = match (text.rsplit_once(" ("), text.ends_with(')')) {
            (Some((before, _)), true) => format!("{before} (..)"),
            _ => text.to_owned(),
        };
        self.writes.iter().fold(text, |text, (version, label)| text.replace(&version.to_string(), label))
    }

    fn show_object(&self, object: &Value) -> String {
        let metadata = &object["metadata"];
        let version = self.label(&metadata["resourceVersion"]);
        match metadata["name"].as_str() {
            Some(name) => format!("{name}@{version}"),
            None => format!("@{version}"),
        }
    }

    fn show_status(&self, status: &Value) -> String {
        let text = |key: &str| status[key].as_str().unwrap_or_default().to_owned();
        format!("{} {}: {}", status["code"], text("reason"), self.plain(&text("message")))
    }

    /// Asks for a list.
    fn list(&mut self, query: &str) -> Value {
        let path = format!("{MAPS}?{}", self.query(query));
        let response = self.server.request("GET", &path, "");
        let body = response.json();
        let shown = if body["kind"] == "Status" {
            self.show_status(&body)
        } else {
            let items: Vec<String> =
                body["items"].as_array().expect("items").iter().map(|item| self.show_object(item)).collect();
            let metadata = &body["metadata"];
            let remaining = match metadata["remainingItemCount"].as_u64() {
                Some(n) => format!(", {n} remain"),
                None => String::new(),
            };
            let more = if metadata["continue"].as_str().is_some() { ", more" } else { "" };
            format!("[{}] at {}{more}{remaining}", items.join(" "), self.label(&metadata["resourceVersion"]))
        };
        // tokens are opaque
        let query = match query.split_once("continue=") {
            Some((before, token)) if token.len() > 10 => format!("{before}continue=.."),
            _ => query.to_owned(),
        };
        writeln!(self.transcript, "?{query}\n  {shown}").expect("a string");
        body
    }

    fn show_event(&self, event: &Value) -> String {
        let object = &event["object"];
        let kind = event["type"].as_str().unwrap_or_default();
        if kind == "ERROR" {
            return format!("ERROR {}", self.show_status(object));
        }
        let is_end = object["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true";
        format!("{kind} {}{}", self.show_object(object), if is_end { " (end of initial events)" } else { "" })
    }

    /// Asks for a watch; shows events up to `until`, or to its end.
    fn watch(&mut self, query: &str, until: &str) {
        let mut connection = self.open(query);
        self.show(&mut connection, until);
    }

    fn open(&mut self, query: &str) -> Option<Connection> {
        let mut connection = Connection::open(&self.server).expect("a connection");
        let path = format!("{MAPS}?watch=true&{}", self.query(query));
        let mut response = connection.send("GET", &path, &[], b"").expect("an answer");
        writeln!(self.transcript, "?watch=true&{query}").expect("a string");
        if response.status == 200 {
            return Some(connection);
        }
        connection.read_body(&mut response).expect("a body");
        let shown = self.show_status(&response.json());
        writeln!(self.transcript, "  {shown}").expect("a string");
        None
    }

    fn show(&mut self, connection: &mut Option<Connection>, until: &str) {
        let Some(connection) = connection else { return };
        for _ in 0..N_EVENTS_MAX {
            let Some(event) = connection.event().expect("a proper end") else {
                self.transcript += "  end\n";
                return;
            };
            let shown = self.show_event(&event);
            writeln!(self.transcript, "  {shown}").expect("a string");
            if shown.starts_with(until) {
                return;
            }
        }
        panic!("{until:?} never came:\n{}", self.transcript);
    }

    fn check(&mut self, expected: Expect) {
        expected.assert_eq(&std::mem::take(&mut self.transcript));
    }
}

#[test]
fn lists() {
    let mut s = Session::start("lists", &[]);
    s.create("a1", "a", "red");
    s.create("b1", "b", "blue");
    s.paint("a2", "a", "green");
    s.create("c1", "c", "red");
    s.write("gone", "DELETE", "b", "");
    for query in [
        "",
        "resourceVersion=0",
        "resourceVersion=<a2>",
        "resourceVersion=<a2>&resourceVersionMatch=NotOlderThan",
        "resourceVersion=<b1>&resourceVersionMatch=Exact",
        "resourceVersion=<c1>&resourceVersionMatch=Exact",
        "resourceVersion=<c1>&limit=10",
        "resourceVersionMatch=Exact",
        "resourceVersion=0&resourceVersionMatch=Exact",
        "resourceVersion=<a1>&resourceVersionMatch=Newest",
        "resourceVersion=soon",
        "labelSelector=colour%3Dred",
        "labelSelector=colour+in+(red,green),!size",
        "labelSelector=colour%3D%3D%3Dred",
        "fieldSelector=metadata.name%3Dc",
        "fieldSelector=data.x%3Dc",
        "limit=-1",
    ] {
        s.list(query);
    }
    s.check(expect![[r#"
        ?
          [a@a2 c@c1] at gone
        ?resourceVersion=0
          [a@a2 c@c1] at gone
        ?resourceVersion=<a2>
          [a@a2 c@c1] at gone
        ?resourceVersion=<a2>&resourceVersionMatch=NotOlderThan
          [a@a2 c@c1] at gone
        ?resourceVersion=<b1>&resourceVersionMatch=Exact
          [a@a1 b@b1] at b1
        ?resourceVersion=<c1>&resourceVersionMatch=Exact
          [a@a2 b@b1 c@c1] at c1
        ?resourceVersion=<c1>&limit=10
          [a@a2 b@b1 c@c1] at c1
        ?resourceVersionMatch=Exact
          422 Invalid: ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided
        ?resourceVersion=0&resourceVersionMatch=Exact
          422 Invalid: ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"
        ?resourceVersion=<a1>&resourceVersionMatch=Newest
          422 Invalid: ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Unsupported value: "Newest": supported values: "Exact", "NotOlderThan", ""
        ?resourceVersion=soon
          400 BadRequest: invalid resource version: resourceVersion: Invalid value: "soon": strconv.ParseUint: parsing "soon": invalid syntax
        ?labelSelector=colour%3Dred
          [c@c1] at gone
        ?labelSelector=colour+in+(red,green),!size
          [a@a2 c@c1] at gone
        ?labelSelector=colour%3D%3D%3Dred
          400 BadRequest: unable to parse requirement: found '=', expected: identifier
        ?fieldSelector=metadata.name%3Dc
          [c@c1] at gone
        ?fieldSelector=data.x%3Dc
          400 BadRequest: "data.x" is not a known field selector: only "metadata.name", "metadata.namespace"
        ?limit=-1
          [a@a2 c@c1] at gone
    "#]]);
}

#[test]
fn pages_show_one_moment() {
    let mut s = Session::start("pages", &[]);
    for name in ["a", "b", "c", "d", "e"] {
        s.create(&format!("{name}1"), name, "red");
    }
    let first = s.list("limit=2");
    s.write("gone", "DELETE", "c", "");
    s.create("f1", "f", "red");
    let token = first["metadata"]["continue"].as_str().expect("more").to_owned();
    let second = s.list(&format!("limit=2&continue={token}"));
    let token = second["metadata"]["continue"].as_str().expect("more").to_owned();
    s.list(&format!("limit=2&resourceVersion=0&continue={token}"));
    s.list(&format!("limit=2&continue={token}"));
    s.list("limit=2&labelSelector=colour%3Dred");
    s.check(expect![[r#"
        ?limit=2
          [a@a1 b@b1] at e1, more, 3 remain
        ?limit=2&continue=..
          [c@c1 d@d1] at e1, more, 1 remain
        ?limit=2&resourceVersion=0&continue=..
          [e@e1] at e1
        ?limit=2&continue=..
          [e@e1] at e1
        ?limit=2&labelSelector=colour%3Dred
          [a@a1 b@b1] at f1, more
    "#]]);
}

#[test]
fn watches_from_every_start() {
    let mut s = Session::start("watches", &[]);
    s.create("a1", "a", "red");
    s.create("b1", "b", "blue");
    s.paint("a2", "a", "green");
    let starts = [
        "",
        "resourceVersion=0",
        "resourceVersion=<a1>",
        "resourceVersion=<a2>",
        "resourceVersion=<a2>&resourceVersionMatch=NotOlderThan",
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=0",
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=<b1>",
        "sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=<b1>",
        "sendInitialEvents=true",
        "sendInitialEvents=true&resourceVersionMatch=Exact",
        "resourceVersion=soon",
        "labelSelector=colour%3D%3D%3Dred",
        "fieldSelector=data.x%3Dc",
    ];
    // all stand open while the change comes
    let mut open: Vec<(String, Option<Connection>)> = Vec::new();
    for query in starts {
        let connection = s.open(query);
        open.push((std::mem::take(&mut s.transcript), connection));
    }
    s.paint("b2", "b", "green");
    for (head, mut connection) in open {
        s.transcript += &head;
        s.show(&mut connection, "MODIFIED b@b2");
    }
    s.check(expect![[r#"
        ?watch=true&
          ADDED a@a2
          ADDED b@b1
          MODIFIED b@b2
        ?watch=true&resourceVersion=0
          ADDED a@a2
          ADDED b@b1
          MODIFIED b@b2
        ?watch=true&resourceVersion=<a1>
          ADDED b@b1
          MODIFIED a@a2
          MODIFIED b@b2
        ?watch=true&resourceVersion=<a2>
          MODIFIED b@b2
        ?watch=true&resourceVersion=<a2>&resourceVersionMatch=NotOlderThan
          422 Invalid: ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided
        ?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true
          ADDED a@a2
          ADDED b@b1
          BOOKMARK @a2 (end of initial events)
          MODIFIED b@b2
        ?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=0
          ADDED a@a2
          ADDED b@b1
          BOOKMARK @a2 (end of initial events)
          MODIFIED b@b2
        ?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=<b1>
          ADDED a@a2
          ADDED b@b1
          BOOKMARK @a2 (end of initial events)
          MODIFIED b@b2
        ?watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=<b1>
          MODIFIED a@a2
          MODIFIED b@b2
        ?watch=true&sendInitialEvents=true
          422 Invalid: ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan
        ?watch=true&sendInitialEvents=true&resourceVersionMatch=Exact
          422 Invalid: ListOptions.meta.k8s.io "" is invalid: [resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan, resourceVersionMatch: Unsupported value: "Exact": supported values: "NotOlderThan"]
        ?watch=true&resourceVersion=soon
          500 : resourceVersion: Invalid value: "soon": strconv.ParseUint: parsing "soon": invalid syntax
        ?watch=true&labelSelector=colour%3D%3D%3Dred
          400 BadRequest: unable to parse requirement: found '=', expected: identifier
        ?watch=true&fieldSelector=data.x%3Dc
          400 BadRequest: "data.x" is not a known field selector: only "metadata.name", "metadata.namespace"
    "#]]);
}

#[test]
fn selectors_turn_changes_into_comings_and_goings() {
    let mut s = Session::start("selected", &[]);
    s.create("a1", "a", "red");
    let mut by_label = s.open("labelSelector=colour%3Dred");
    let mut by_name = s.open("fieldSelector=metadata.name%3Db&resourceVersion=<a1>");
    s.transcript.clear();
    s.paint("a2", "a", "blue");
    s.create("b1", "b", "blue");
    s.paint("b2", "b", "red");
    s.paint("b3", "b", "red");
    s.write("b4", "PATCH", "b", r#"{"data":{"x":"1"}}"#);
    s.write("gone", "DELETE", "b", "");
    for (title, connection) in [("colour=red", &mut by_label), ("metadata.name=b", &mut by_name)] {
        writeln!(s.transcript, "{title}").expect("a string");
        s.show(connection, "DELETED b");
    }
    s.check(expect![[r#"
        colour=red
          ADDED a@a1
          DELETED a@a2
          ADDED b@b3
          MODIFIED b@b4
          DELETED b@gone
        metadata.name=b
          ADDED b@b1
          MODIFIED b@b3
          MODIFIED b@b4
          DELETED b@gone
    "#]]);
}

#[test]
fn a_watch_ends_when_it_asked_to() {
    let mut s = Session::start("ended", &[]);
    s.create("a1", "a", "red");
    s.watch("timeoutSeconds=1", "(never)");
    s.watch("timeoutSeconds=1&allowWatchBookmarks=true&resourceVersion=<a1>", "(never)");
    // the connection is good for another request
    let mut connection = Connection::open(&s.server).expect("a connection");
    connection.send("GET", &format!("{MAPS}?watch=1&timeoutSeconds=1"), &[], b"").expect("an answer");
    while connection.event().expect("a proper end").is_some() {}
    assert_eq!(connection.request("GET", &format!("{MAPS}/a"), b"").expect("an answer").status, 200);
    s.check(expect![[r#"
        ?watch=true&timeoutSeconds=1
          ADDED a@a1
          end
        ?watch=true&timeoutSeconds=1&allowWatchBookmarks=true&resourceVersion=<a1>
          end
    "#]]);
}

#[test]
fn what_is_forgotten_is_gone() {
    let flags = ["--history-time=1ms"];
    let mut s = Session::start("forgotten", &flags);
    s.create("a1", "a", "red");
    s.paint("a2", "a", "blue");
    let first = s.list("limit=1");
    assert_eq!(first["metadata"]["continue"], Value::Null);
    s.create("b1", "b", "red");
    let page = s.server.request("GET", &format!("{MAPS}?limit=1"), "").json();
    let token = page["metadata"]["continue"].as_str().expect("more").to_owned();
    // a new process remembers only what the store does
    let Session { server, writes, .. } = s;
    let port = server.port;
    let (_, dir) = server.signal(rustix::process::Signal::TERM);
    let server = Server::start_in(dir, port, "apiserver", &flags);
    let mut s = Session { server, writes, transcript: String::new() };
    let old = format!("{MAPS}?resourceVersionMatch=Exact&resourceVersion={}", s.version("a1"));
    s.paint("b2", "b", "blue");
    eventually("history forgotten", || (s.server.request("GET", &old, "").status == 410).then_some(()));
    s.list("resourceVersionMatch=Exact&resourceVersion=<a1>");
    s.watch("resourceVersion=<a1>", "ERROR");
    let late = s.list(&format!("limit=1&continue={token}"));
    let token = late["metadata"]["continue"].as_str().map(str::to_owned);
    // the token of the refusal goes on where the old one was, at the newest version
    s.list(&format!("continue={}", token.expect("a token")));
    s.check(expect![[r#"
        ?resourceVersionMatch=Exact&resourceVersion=<a1>
          410 Expired: The resourceVersion for the provided list is too old.
        ?watch=true&resourceVersion=<a1>
          ERROR 410 Expired: too old resource version: a1 (..)
        ?limit=1&continue=..
          410 Expired: The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.
        ?continue=..
          [b@b2] at b2
    "#]]);
}
