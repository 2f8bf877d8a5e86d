//! Programs that are not part of Rust: found, obtained, or said to be missing.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The first program of that name on the `PATH`.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?).map(|dir| dir.join(name)).find(|path| path.is_file())
}

/// Says why a test does nothing.
pub(crate) fn skipped(what: &str, why: &str) {
    // written past the capture of the test harness, so that it is seen when the test passes
    let line = format!("skipped: {what}: {why}\n");
    let _ = std::io::Write::write_all(&mut std::io::stderr().lock(), line.as_bytes());
}

/// A directory that is kept from run to run.
pub(crate) fn cache(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache").join(name);
    std::fs::create_dir_all(&path).expect("a directory");
    path
}

/// The folder of the programs that use other languages' clients.
pub(crate) fn clients(language: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/clients").join(language)
}

/// Runs a command to its end.
pub(crate) fn run(command: &mut Command) -> Result<Output, String> {
    let output = command.stdin(Stdio::null()).output().map_err(|why| format!("{command:?}: {why}"))?;
    if output.status.success() {
        return Ok(output);
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    Err(format!("{command:?}: {}\n{text}", output.status))
}

/// kubectl: `KUBECTL`, or the one on the `PATH`, or the one of the version that is served, from where it is published.
pub(crate) fn kubectl() -> Result<PathBuf, String> {
    if let Some(path) = std::env::var_os("KUBECTL").map(PathBuf::from).or_else(|| on_path("kubectl")) {
        return Ok(path);
    }
    let path = cache("kubectl").join("kubectl");
    if !path.is_file() {
        let platform = match std::env::consts::ARCH {
            "x86_64" => "linux/amd64",
            "aarch64" => "linux/arm64",
            other => return Err(format!("none is published for {other}")),
        };
        let url = format!("https://dl.k8s.io/release/v1.35.4/bin/{platform}/kubectl");
        let part = path.with_extension("part");
        run(Command::new("curl").args(["-fsSL", "--max-time", "120", "-o"]).arg(&part).arg(url))?;
        run(Command::new("chmod").arg("+x").arg(&part))?;
        std::fs::rename(&part, &path).map_err(|why| why.to_string())?;
    }
    Ok(path)
}
