//! The imports between the files of a crate.

use std::collections::BTreeMap;
use std::path::Path;

use super::cycles::components;
use super::imports::{Import, Scope, scopes};

/// The maximum number of re-exports followed for one name, because re-exports may form a cycle.
const REEXPORTS_MAX: usize = 16;

/// The path of a module in its crate; empty for the root.
pub(super) type ModulePath = Vec<String>;

/// A module with its scope and the file that contains it.
#[derive(Debug)]
struct Module {
    file: usize,
    scope: Scope,
}

/// The files of a crate without its tests, and the imports between them.
#[derive(Debug)]
pub struct ModuleGraph {
    /// Files by their paths below the folder of sources, such as `engine/read.rs`.
    files: Vec<String>,
    modules: BTreeMap<ModulePath, Module>,
    /// The module of each file.
    module_of: Vec<ModulePath>,
    /// Imports from file to file, each with the first line that needs it.
    edges: BTreeMap<(usize, usize), usize>,
    /// Files that import everything from the root, each with the line of the import.
    globs_of_root: Vec<(usize, usize)>,
}

/// Files that import each other, directly or through others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cycle {
    /// The files, in the order of their paths.
    pub files: Vec<String>,
    /// The imports among these files, such as `engine/read.rs:3 imports engine/write.rs`.
    pub imports: Vec<String>,
}

/// Why the modules of a crate cannot be found.
#[derive(Debug)]
pub struct MissingFile {
    /// The file or files that were expected.
    pub path: String,
}

impl std::fmt::Display for MissingFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "no source file {}", self.path)
    }
}

impl std::error::Error for MissingFile {}

impl ModuleGraph {
    /// Reads the sources below `dir`, from the root file `lib.rs`, or `main.rs` if there is none.
    ///
    /// # Errors
    /// When a declared module has no file.
    #[allow(clippy::disallowed_methods, reason = "the sources are files")]
    pub fn read(dir: &Path) -> Result<Self, MissingFile> {
        let root = if dir.join("lib.rs").exists() { "lib.rs" } else { "main.rs" };
        Self::build(root, |path| std::fs::read_to_string(dir.join(path)).ok())
    }

    /// Follows the declarations of modules from the file `root`; `read` returns the text of a file.
    ///
    /// # Errors
    /// When a declared module has no file.
    pub fn build(root: &str, read: impl Fn(&str) -> Option<String>) -> Result<Self, MissingFile> {
        let mut graph = Self {
            files: Vec::new(),
            modules: BTreeMap::new(),
            module_of: Vec::new(),
            edges: BTreeMap::new(),
            globs_of_root: Vec::new(),
        };
        let mut waiting = vec![(ModulePath::new(), vec![root.to_owned()])];
        while let Some((module, candidates)) = waiting.pop() {
            let found = candidates.iter().find_map(|path| Some((path.clone(), read(path)?)));
            let (path, source) =
                found.ok_or_else(|| MissingFile { path: candidates.join(" or ") })?;
            let file = graph.files.len();
            graph.files.push(path);
            graph.module_of.push(module.clone());
            for scope in scopes(&source) {
                let inside = [&module[..], &scope.inline[..]].concat();
                for child in &scope.children {
                    let child = [&inside[..], std::slice::from_ref(child)].concat();
                    let path = child.join("/");
                    waiting.push((child, vec![format!("{path}.rs"), format!("{path}/mod.rs")]));
                }
                graph.modules.insert(inside, Module { file, scope });
            }
        }
        graph.connect();
        Ok(graph)
    }

    /// The paths of all files below the folder of sources.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(String::as_str)
    }

    /// Returns the file that declares the type that is called `name` in the file at `path`; this is
    /// `path` itself if the name is not imported.
    pub fn origin<'a>(&'a self, path: &'a str, name: &str) -> &'a str {
        let Some(file) = self.files.iter().position(|file| file == path) else { return path };
        let found = self.follow(&self.module_of[file], &[name.to_owned()], 0);
        found.and_then(|found| Some(self.files[self.file_of(&found)?].as_str())).unwrap_or(path)
    }

    /// The cycles of imports, largest first.
    pub fn cycles(&self) -> Vec<Cycle> {
        let mut targets = vec![Vec::new(); self.files.len()];
        for &(from, to) in self.edges.keys() {
            targets[from].push(to);
        }
        let mut cycles: Vec<Cycle> = components(&targets)
            .into_iter()
            .filter(|members| members.len() > 1)
            .map(|members| self.cycle(&members))
            .collect();
        cycles.sort_by_key(|cycle| (usize::MAX - cycle.files.len(), cycle.files.clone()));
        cycles
    }

    fn cycle(&self, members: &[usize]) -> Cycle {
        let mut files: Vec<String> =
            members.iter().map(|&member| self.files[member].clone()).collect();
        files.sort();
        let within =
            self.edges.iter().filter(|((a, b), _)| members.contains(a) && members.contains(b));
        let mut imports: Vec<String> = within
            .map(|(&(from, to), line)| {
                format!("{}:{line} imports {}", self.files[from], self.files[to])
            })
            .collect();
        imports.sort();
        Cycle { files, imports }
    }

    /// Returns every import: its file and line, the importing module and the imported module.
    pub(super) fn imports(&self) -> impl Iterator<Item = (String, &[String], &[String])> {
        self.edges.iter().map(|(&(from, to), line)| {
            let place = format!("{}:{line}", self.files[from]);
            (place, &self.module_of[from][..], &self.module_of[to][..])
        })
    }

    /// Returns the file and line of each import of everything from the root.
    pub(super) fn globs_of_root(&self) -> impl Iterator<Item = String> {
        self.globs_of_root.iter().map(|(file, line)| format!("{}:{line}", self.files[*file]))
    }

    /// Returns true if a file of the crate contains this module.
    pub(super) fn has_module(&self, module: &[String]) -> bool {
        self.module_of.iter().any(|known| known == module)
    }

    /// The modules that the root declares.
    pub(super) fn top_modules(&self) -> impl Iterator<Item = &[String]> {
        self.module_of.iter().map(|module| &module[..]).filter(|module| module.len() == 1)
    }

    fn connect(&mut self) {
        let mut found = Vec::new();
        let mut globs = Vec::new();
        for (path, module) in &self.modules {
            for import in &module.scope.imports {
                if import.name == "*" && import.path == ["crate", "*"] {
                    globs.push((module.file, import.line));
                }
                for target in self.targets(path, &import.path) {
                    if !is_facade(path, &target, import, &module.scope) {
                        found.push((module.file, target, import.line));
                    }
                }
            }
            for (mentioned, line) in &module.scope.mentions {
                for target in self.targets(path, mentioned) {
                    found.push((module.file, target, *line));
                }
            }
        }
        for (from, target, line) in found {
            let Some(to) = self.file_of(&target).filter(|to| *to != from) else { continue };
            let first = self.edges.entry((from, to)).or_insert(line);
            *first = line.min(*first);
        }
        self.globs_of_root = globs;
    }

    fn file_of(&self, module: &[String]) -> Option<usize> {
        self.modules.get(module).map(|module| module.file)
    }

    /// Returns the modules that a path depends on: the module that declares the name, and the
    /// module that the path names if that module only re-exports the name. An ancestor of the
    /// declaring module is a facade and does not count. For a name of another crate, an ancestor of
    /// the importing module does not count either.
    fn targets(&self, from: &[String], path: &[String]) -> Vec<ModulePath> {
        let Some((named, rest)) = self.walk(from, path, 0) else { return Vec::new() };
        match self.follow(&named, rest, 0) {
            Some(declared) if declared.starts_with(&named) => vec![declared],
            Some(declared) => vec![named, declared],
            None if from.starts_with(&named) => Vec::new(),
            None => vec![named],
        }
    }

    /// Returns the module that declares what `path` names when it is used in the module `from`;
    /// `None` if another crate declares it.
    fn resolve(&self, from: &[String], path: &[String], depth: usize) -> Option<ModulePath> {
        let (named, rest) = self.walk(from, path, depth)?;
        self.follow(&named, rest, depth)
    }

    /// Follows the segments of a path that are modules; returns the last module and the remaining
    /// path.
    fn walk<'a>(
        &self,
        from: &[String],
        path: &'a [String],
        depth: usize,
    ) -> Option<(ModulePath, &'a [String])> {
        let mut rest = path;
        let mut current = from.to_vec();
        match path.first()?.as_str() {
            "crate" => (current, rest) = (ModulePath::new(), &path[1..]),
            "self" => rest = &path[1..],
            "super" => {
                while rest.first().is_some_and(|segment| segment == "super") {
                    current.pop();
                    rest = &rest[1..];
                }
            }
            first => {
                let child = [from, std::slice::from_ref(&path[0])].concat();
                if !self.modules.contains_key(&child) {
                    let import = self.import(from, first).filter(|_| depth < REEXPORTS_MAX)?;
                    // In `use a;`, where `a` is another crate, the path is the name itself.
                    let is_itself = import.path.first().is_some_and(|segment| segment == first);
                    let target = self.resolve_module(from, import, depth).filter(|_| !is_itself)?;
                    (current, rest) = (target, &path[1..]);
                }
            }
        }
        while let Some(segment) = rest.first() {
            let child = [&current[..], std::slice::from_ref(segment)].concat();
            if !self.modules.contains_key(&child) {
                break;
            }
            (current, rest) = (child, &rest[1..]);
        }
        Some((current, rest))
    }

    /// Returns the module that an imported name stands for, or the module that declares the name.
    fn resolve_module(&self, from: &[String], import: &Import, depth: usize) -> Option<ModulePath> {
        self.resolve(from, &import.path, depth + 1)
    }

    /// Follows the re-exports of `module` for the first segment of `rest`; `None` if they lead to
    /// another crate.
    fn follow(&self, module: &[String], rest: &[String], depth: usize) -> Option<ModulePath> {
        let Some(name) = rest.first().filter(|_| depth < REEXPORTS_MAX) else {
            return Some(module.to_vec());
        };
        if let Some(import) = self.import(module, name) {
            let path = [&import.path[..], &rest[1..]].concat();
            return self.resolve(module, &path, depth + 1);
        }
        Some(self.through_globs(module, name, depth).unwrap_or_else(|| module.to_vec()))
    }

    fn import(&self, module: &[String], name: &str) -> Option<&Import> {
        self.modules.get(module)?.scope.imports.iter().find(|import| import.name == name)
    }

    /// Returns the module that declares `name`, if `module` re-exports that module as a whole.
    fn through_globs(&self, module: &[String], name: &str, depth: usize) -> Option<ModulePath> {
        let imports = &self.modules.get(module)?.scope.imports;
        let globs = imports.iter().filter(|import| import.name == "*" && import.is_reexport);
        let mut targets = globs.filter_map(|glob| {
            let path = &glob.path[..glob.path.len() - 1];
            self.resolve(module, path, depth + 1)
        });
        targets.find_map(|target| {
            let scope = &self.modules.get(&target)?.scope;
            if scope.words.iter().any(|word| word == name) {
                return Some(target);
            }
            let import = self.import(&target, name)?;
            self.resolve(&target, &import.path, depth + 1)
        })
    }
}

/// Returns true if a module re-exports a name of a descendant without using the name itself. Such a
/// facade does not depend on the names that it re-exports.
fn is_facade(module: &[String], target: &[String], import: &Import, scope: &Scope) -> bool {
    let is_used = scope.words.contains(&import.name);
    import.is_reexport && target.len() > module.len() && target.starts_with(module) && !is_used
}
