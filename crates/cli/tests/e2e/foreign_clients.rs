//! The client libraries of other languages, as published: programs below `clients/` print `ok NAME` or `FAIL NAME: why`
//! for each thing they try.

use crate::server::Server;
use crate::tools::{cache, clients, on_path, run, skipped};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs the program and looks at what it printed.
fn check(server: &Server, command: &mut Command) {
    command.env("KUBECONFIG", server.kubeconfig());
    let text = match run(command) {
        Ok(output) => String::from_utf8_lossy(&output.stdout).into_owned(),
        Err(why) => panic!("{why}\n--- the server's log\n{}", server.log()),
    };
    let n_ok = text.lines().filter(|line| line.starts_with("ok ")).count();
    assert!(n_ok > 5, "it tried too little:\n{text}");
    assert!(!text.contains("FAIL"), "{text}");
}

/// Runs `make` unless it was done with the same file before.
fn once(target: &Path, recipe: &Path, make: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    let (stamp, wanted) = (target.join("made-from"), std::fs::read(recipe).map_err(|why| why.to_string())?);
    if std::fs::read(&stamp).is_ok_and(|made| made == wanted) {
        return Ok(());
    }
    make()?;
    std::fs::write(stamp, wanted).map_err(|why| why.to_string())
}

fn go_program() -> Result<PathBuf, String> {
    let go = on_path("go").ok_or("there is no go on the PATH")?;
    let program = cache("go").join("client");
    run(Command::new(go).args(["build", "-mod=readonly", "-o"]).arg(&program).arg(".").current_dir(clients("go")))?;
    Ok(program)
}

#[test]
fn client_go() {
    let program = match go_program() {
        Ok(program) => program,
        Err(why) => return skipped("client-go", &why),
    };
    let server = Server::start("client-go");
    for content in ["json", "protobuf"] {
        check(&server, Command::new(&program).args(["--content", content]));
    }
}

fn python() -> Result<PathBuf, String> {
    let python = on_path("python3").ok_or("there is no python3 on the PATH")?;
    let (home, requirements) = (cache("python"), clients("python").join("requirements.txt"));
    let own = home.join("bin/python");
    once(&home, &requirements, || {
        run(Command::new(python).args(["-m", "venv", "--clear"]).arg(&home))?;
        run(Command::new(&own).args(["-m", "pip", "install", "--quiet", "-r"]).arg(&requirements)).map(|_| ())
    })?;
    Ok(own)
}

#[test]
fn python_client() {
    let python = match python() {
        Ok(python) => python,
        Err(why) => return skipped("the Python client", &why),
    };
    let server = Server::start("python");
    check(&server, Command::new(python).arg(clients("python").join("client.py")));
}

fn javascript() -> Result<PathBuf, String> {
    let npm = on_path("npm").ok_or("there is no npm on the PATH")?;
    let (home, source) = (cache("javascript"), clients("javascript"));
    once(&home, &source.join("package-lock.json"), || {
        for file in ["package.json", "package-lock.json"] {
            std::fs::copy(source.join(file), home.join(file)).map_err(|why| why.to_string())?;
        }
        let arguments = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"];
        run(Command::new(npm).args(arguments).current_dir(&home)).map(|_| ())
    })?;
    // modules are looked for beside the program
    std::fs::copy(source.join("client.mjs"), home.join("client.mjs")).map_err(|why| why.to_string())?;
    Ok(home.join("client.mjs"))
}

#[test]
fn javascript_client() {
    let Some(node) = on_path("node") else { return skipped("the JavaScript client", "there is no node on the PATH") };
    let program = match javascript() {
        Ok(program) => program,
        Err(why) => return skipped("the JavaScript client", &why),
    };
    let server = Server::start("javascript");
    check(&server, Command::new(node).arg(program));
}
