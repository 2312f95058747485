//! `Cargo.toml` as far as tidy asks: sections, one dependency a line, and its comment. Cargo itself
//! rejects what is not TOML; a form that this reader does not know shows up as a finding.

/// A manifest.
#[derive(Debug)]
pub(crate) struct CrateManifest {
    /// Its path from the root.
    pub(crate) path: String,
    /// Its lines `key = value`, in order.
    pub(crate) entries: Vec<ManifestEntry>,
    /// Headers of sections that hold one dependency each (`[dependencies.x]`), with their line.
    pub(crate) dependency_sections: Vec<(usize, String)>,
}

/// A line `key = value`; a value over several lines is joined to one.
#[derive(Debug)]
pub(crate) struct ManifestEntry {
    /// Section, without brackets.
    pub(crate) section: String,
    /// All of the key, such as `serde` or `serde.workspace`.
    pub(crate) key: String,
    /// The value without its comment.
    pub(crate) value: String,
    /// Line it starts at, from 1.
    pub(crate) line: usize,
    /// Whether a comment stands on its lines, or directly above it (headings `# ---` do not count).
    pub(crate) has_comment: bool,
}

impl ManifestEntry {
    /// The dependency's name: the key up to its first dot.
    pub(crate) fn name(&self) -> &str {
        self.key.split('.').next().unwrap_or(&self.key)
    }

    /// Whether the section lists dependencies of the crate itself, for any target.
    pub(crate) fn is_dependency(&self) -> bool {
        self.is_normal_dependency() || self.last_section() == "dev-dependencies"
    }

    /// As above, without dev-dependencies; what a build script needs counts.
    pub(crate) fn is_normal_dependency(&self) -> bool {
        matches!(self.last_section(), "dependencies" | "build-dependencies")
            && self.section != "workspace.dependencies"
    }

    fn last_section(&self) -> &str {
        self.section.rsplit('.').next().unwrap_or(&self.section)
    }
}

impl CrateManifest {
    pub(crate) fn parse(path: &str, text: &str) -> Self {
        let mut manifest =
            Self { path: path.to_owned(), entries: Vec::new(), dependency_sections: Vec::new() };
        let mut section = String::new();
        let mut comment_above = false;
        let mut lines = text.lines().enumerate();
        while let Some((number, line)) = lines.next() {
            let (code, mut has_comment) = split_comment(line);
            let code = code.trim();
            if let Some(header) = code.strip_prefix('[') {
                section = header.trim_matches(['[', ']', ' ']).to_owned();
                if section.contains("dependencies.") {
                    manifest.dependency_sections.push((number + 1, section.clone()));
                }
            } else if let Some((key, value)) = code.split_once('=') {
                let mut value = value.trim().to_owned();
                while is_open(&value) {
                    let Some((_, more)) = lines.next() else { break };
                    let (code, comment) = split_comment(more);
                    value.push_str(code.trim());
                    has_comment |= comment;
                }
                manifest.entries.push(ManifestEntry {
                    section: section.clone(),
                    key: key.trim().to_owned(),
                    value,
                    line: number + 1,
                    has_comment: has_comment || comment_above,
                });
            }
            comment_above = code.is_empty() && has_comment;
        }
        manifest
    }

    /// The value of `key` in `[section]`, unquoted.
    pub(crate) fn value(&self, section: &str, key: &str) -> Option<&str> {
        let entry = self.entries.iter().find(|e| e.section == section && e.key == key)?;
        Some(entry.value.trim_matches('"'))
    }

    /// Lines of all sections that list the crate's dependencies.
    pub(crate) fn dependencies(&self) -> impl Iterator<Item = &ManifestEntry> {
        self.entries.iter().filter(|entry| entry.is_dependency())
    }
}

/// Code before the comment of a line, and whether there is a comment that says something; headings
/// (`# --- tests`) say nothing about a single line.
fn split_comment(line: &str) -> (&str, bool) {
    let mut quoted = false;
    for (at, letter) in line.char_indices() {
        match letter {
            '"' => quoted = !quoted,
            '#' if !quoted => {
                let comment = line[at + 1..].trim();
                return (&line[..at], !comment.is_empty() && !comment.starts_with("---"));
            }
            _ => {}
        }
    }
    (line, false)
}

/// Whether a value goes on in the next line: more brackets opened than closed.
fn is_open(value: &str) -> bool {
    let mut depth = 0i32;
    let mut quoted = false;
    for letter in value.chars() {
        match letter {
            '"' => quoted = !quoted,
            '[' | '{' if !quoted => depth += 1,
            ']' | '}' if !quoted => depth -= 1,
            _ => {}
        }
    }
    depth > 0
}

#[cfg(test)]
mod tests {
    use super::CrateManifest;

    #[test]
    fn a_value_over_several_lines_is_one_entry() {
        let manifest = CrateManifest::parse(
            "Cargo.toml",
            "[workspace.dependencies]\nb = { version = \"1\", features = [\n  \"x#y\",\n] } # why\nc = \"2\"\n",
        );
        let keys: Vec<_> = manifest.entries.iter().map(|e| (e.name(), e.line)).collect();
        assert_eq!(keys, [("b", 2), ("c", 5)]);
        assert_eq!(manifest.entries[0].value, "{ version = \"1\", features = [\"x#y\",] }");
        assert!(manifest.entries[0].has_comment);
        assert!(!manifest.entries[1].has_comment);
    }

    #[test]
    fn a_heading_is_not_a_reason_and_a_sentence_above_is() {
        let manifest = CrateManifest::parse(
            "Cargo.toml",
            "[x]\n# --- tests\na = \"1\"\n# for b\nb = \"1\"\nc = \"1\"",
        );
        let comments: Vec<bool> = manifest.entries.iter().map(|e| e.has_comment).collect();
        assert_eq!(comments, [false, true, false]);
    }

    #[test]
    fn dependency_sections_of_targets_count_and_the_workspace_table_does_not() {
        let manifest = CrateManifest::parse(
            "Cargo.toml",
            "[workspace.dependencies]\na = \"1\"\n[target.'cfg(unix)'.dependencies]\nb.workspace = true\n[dev-dependencies]\nc.workspace = true\n",
        );
        let names: Vec<&str> = manifest.dependencies().map(|e| e.name()).collect();
        assert_eq!(names, ["b", "c"]);
    }
}
