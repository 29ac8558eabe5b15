//! Reads scenes: a YAML file with a list of them, in the form that `tests/parity/README.md` describes.

use crate::support::Value;
use std::collections::HashSet;
use std::path::Path;

/// Configurations, replies of hooks, and requests.
pub(super) struct Scene {
    pub(super) name: String,
    /// What each hook answers, by its path.
    pub(super) hooks: Value,
    /// Objects that are made before the first step, in order.
    pub(super) setup: Vec<Value>,
    pub(super) steps: Vec<Value>,
    /// Hooks are called at the same time, so that calls have no order.
    pub(super) parallel: bool,
}

/// Reads all files of a folder, with their names.
pub(super) fn all(folder: &Path) -> Vec<(String, Vec<Scene>)> {
    let mut all: Vec<(String, Vec<Scene>)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "yaml"))
        .map(|path| {
            let file = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let scenes = read(&file, &std::fs::read(&path).unwrap());
            (file, scenes)
        })
        .collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    // Each scene has a namespace of its own name.
    let mut names = HashSet::new();
    for scene in all.iter().flat_map(|(_, scenes)| scenes) {
        assert!(names.insert(&scene.name), "two scenes {}", scene.name);
    }
    all
}

fn read(file: &str, text: &[u8]) -> Vec<Scene> {
    let parsed = match bareboat_wire::yaml::parse(text) {
        Ok(parsed) => parsed,
        Err(error) => panic!("{file}: {error}"),
    };
    let twice = &parsed.duplicates;
    assert!(twice.is_empty(), "{file}: {twice:?}");
    let scenes: Value = serde_json::from_slice(&parsed.value.to_json()).unwrap();
    let scenes = scenes.as_array().expect("a list of scenes").iter();
    scenes.map(|scene| Scene::read(file, scene)).collect()
}

impl Scene {
    fn read(file: &str, scene: &Value) -> Scene {
        for key in scene.as_object().expect("a scene").keys() {
            let known = ["scene", "hooks", "setup", "steps", "parallel"];
            assert!(known.contains(&key.as_str()), "{file}: what is {key}?");
        }
        let list = |key: &str| scene[key].as_array().cloned().unwrap_or_default();
        Scene {
            name: scene["scene"].as_str().expect("a name").to_owned(),
            hooks: scene["hooks"].clone(),
            setup: list("setup"),
            steps: list("steps"),
            parallel: scene["parallel"] == true,
        }
    }
}
