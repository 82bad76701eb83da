//! Finding the releases of clang, and installing clang 19 from the packages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use assay_image::Release;

use super::Compiler;
use crate::toolchain::{self, Unavailable, target};

/// The packages of Debian 12 and Ubuntu 24.04: 68 MB to download, 341 MB on disk.
const PACKAGES: [&str; 3] = ["clang-19", "lld-19", "llvm-19"];

const HINT: &str = "apt-get install --no-install-recommends clang-19 lld-19 llvm-19";

/// Every release that is installed, oldest first, or what to install.
pub(crate) fn installed() -> Result<Vec<Compiler>, Unavailable> {
    let compilers = [packaged(), bundled()];
    if compilers.iter().all(Result::is_err) {
        let [packaged, _] = compilers;
        return packaged.map(|compiler| vec![compiler]);
    }
    let mut compilers: Vec<Compiler> = compilers.into_iter().flatten().collect();
    compilers.sort_by_key(|compiler| compiler.release);
    Ok(compilers)
}

/// clang 19, where it and its linker are installed.
pub(super) fn packaged() -> Result<Compiler, Unavailable> {
    run("ld.lld-19", &["--version"])?;
    let clang = PathBuf::from("clang++-19");
    let release = release_of(&clang, None)?;
    Ok(Compiler { clang, first: None, linker: None, readelf: readelf(), release })
}

/// The newer clang that comes in the wheel of another project, whose linker clang does not find.
fn bundled() -> Result<Compiler, Unavailable> {
    let Some(clang) = toolchain::newer_clang() else {
        return Err(unavailable("the wheel with a newer clang is not installed".to_owned()));
    };
    let first = Some("clang");
    let release = release_of(&clang, first)?;
    let linker = target().join("records").join(format!("clang-{release}-linker"));
    write_linker(&linker, &clang).map_err(|error| unavailable(error.to_string()))?;
    Ok(Compiler { clang, first, linker: Some(linker), readelf: readelf(), release })
}

/// Writes a program `lld`, which clang calls with the kind of linker in front.
fn write_linker(folder: &Path, clang: &Path) -> std::io::Result<()> {
    let (path, clang) = (folder.join("lld"), std::path::absolute(clang)?);
    let text = format!("#!/bin/sh\nshift 2\nexec '{}' ld.lld \"$@\"\n", clang.display());
    if fs::read_to_string(&path).is_ok_and(|found| found == text) {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    fs::write(&path, text)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

fn readelf() -> Option<PathBuf> {
    run("llvm-readelf-19", &["--version"]).ok().map(|_| "llvm-readelf-19".into())
}

fn release_of(clang: &Path, first: Option<&str>) -> Result<Release, Unavailable> {
    let arguments: Vec<&str> = first.into_iter().chain(["--version"]).collect();
    let version = run(&clang.to_string_lossy(), &arguments)?;
    let text = String::from_utf8_lossy(&version.stdout).into_owned();
    release(&text).ok_or_else(|| {
        let first = text.lines().next().unwrap_or_default();
        unavailable(format!("{} does not name its release: `{first}`", clang.display()))
    })
}

/// Installs the packages unless they are there. Only root may, and only where there is apt-get.
pub(crate) fn install() -> Result<Compiler, Unavailable> {
    if let Ok(found) = packaged()
        && found.readelf.is_some()
    {
        return Ok(found);
    }
    if !is_root() {
        return Err(unavailable("clang-19 is not installed, and only root may".to_owned()));
    }
    eprintln!("installing {} (about 68 MB)", PACKAGES.join(", "));
    let packages = ["install", "--yes", "--quiet", "--no-install-recommends"];
    let arguments: Vec<&str> = packages.into_iter().chain(PACKAGES).collect();
    // A new machine has no lists of packages yet.
    run("apt-get", &arguments).or_else(|_| {
        run("apt-get", &["update", "--quiet"]).and_then(|_| run("apt-get", &arguments))
    })?;
    packaged()
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output();
    output.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

fn run(program: &str, arguments: &[&str]) -> Result<Output, Unavailable> {
    let output = Command::new(program)
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .output()
        .map_err(|error| unavailable(format!("cannot run {program}: {error}")))?;
    if output.status.success() {
        return Ok(output);
    }
    let message = String::from_utf8_lossy(&output.stderr);
    let last = message.lines().rev().find(|line| !line.trim().is_empty());
    let last = last.unwrap_or("it failed without a word").trim();
    Err(unavailable(format!("{program}: {last}")))
}

fn unavailable(reason: String) -> Unavailable {
    Unavailable { reason, hint: HINT }
}

/// The release in what `clang --version` prints.
fn release(text: &str) -> Option<Release> {
    let (_, rest) = text.split_once("clang version ")?;
    let end = rest.find(|character: char| character != '.' && !character.is_ascii_digit());
    rest.get(..end.unwrap_or(rest.len()))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use assay_image::Release;

    #[test]
    fn the_release_is_read_from_what_clang_says() {
        let release = Release { major: 19, minor: 1, patch: 7 };
        for text in [
            "Debian clang version 19.1.7 (3~deb12u1)\nTarget: x86_64-pc-linux-gnu\n",
            "Ubuntu clang version 19.1.7\n",
            "clang version 19.1.7",
        ] {
            assert_eq!(super::release(text), Some(release), "{text}");
        }
        assert_eq!(super::release("gcc 12.2"), None);
        assert_eq!(super::release("clang version trunk"), None);
    }

    #[test]
    fn a_program_that_is_missing_is_a_reason_with_what_to_install() {
        let error = super::run("no-such-clang", &[]).expect_err("there is no such program");
        assert!(error.reason.contains("no-such-clang"), "{error}");
        assert!(error.to_string().contains("clang-19 lld-19 llvm-19"), "{error}");
        let error = super::run("false", &[]).expect_err("it fails");
        assert!(error.reason.starts_with("false: "), "{error}");
    }
}
