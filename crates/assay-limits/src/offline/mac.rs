//! The folder on a Mac: its files, and Xcode's tools through `xcrun`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Workshop;

/// A folder of Metal sources on a Mac with Xcode.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mac {
    folder: PathBuf,
}

impl Mac {
    /// Works in a folder; what it compiles is left there.
    pub fn new(folder: &Path) -> Mac {
        Mac { folder: folder.to_owned() }
    }
}

impl Workshop for Mac {
    fn sources(&mut self) -> Result<Vec<String>, String> {
        let entries = fs::read_dir(&self.folder).map_err(|error| error.to_string())?;
        let mut names = Vec::new();
        for entry in entries {
            let path = entry.map_err(|error| error.to_string())?.path();
            let is_source = path.extension().is_some_and(|extension| extension == "metal");
            if let (true, Some(name)) = (is_source, path.file_name().and_then(|name| name.to_str()))
            {
                names.push(name.to_owned());
            }
        }
        names.sort();
        Ok(names)
    }

    fn read(&mut self, name: &str) -> Result<Vec<u8>, String> {
        fs::read(self.folder.join(name)).map_err(|error| format!("{name}: {error}"))
    }

    fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), String> {
        fs::write(self.folder.join(name), bytes).map_err(|error| format!("{name}: {error}"))
    }

    fn run(&mut self, tool: &str, arguments: &[&str]) -> Result<String, String> {
        let output = Command::new("xcrun")
            .args(["-sdk", "macosx", tool])
            .args(arguments)
            .current_dir(&self.folder)
            .output()
            .map_err(|error| format!("xcrun cannot be run (Xcode on a Mac has it): {error}"))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(format!("{tool} failed: {}", said.lines().next().unwrap_or("it said nothing")))
    }
}
