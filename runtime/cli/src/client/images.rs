//! Images that are files beside a manifest: the agent, which has another folder, is told where they are.

use std::path::Path;

use husk_agent::ImageTable;
use husk_api::{Problem, Written};
use serde_json::Value;

/// Lists of containers.
const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];
/// Where pods are in objects.
const PODS: [&str; 2] = ["/spec", "/spec/template/spec"];

/// Makes the paths of images absolute; they are relative to the folder of their manifest. What isn't there is a problem.
pub(crate) fn make_absolute(written: &mut Written, manifest: &Path, file: &str) -> Vec<Problem> {
    let folder = manifest.parent().unwrap_or(Path::new(""));
    let mut missing = Vec::new();
    for place in PODS {
        let path = place[1..].replace('/', ".");
        let Some(spec) = written.json.pointer_mut(place) else { continue };
        for list in CONTAINERS {
            for (index, container) in items(spec, list).enumerate() {
                if let Some(wanted) = container.get_mut("image").and_then(|image| absolute(image, folder)) {
                    missing.push((format!("{path}.{list}[{index}].image"), wanted));
                }
            }
        }
        for (index, volume) in items(spec, "volumes").enumerate() {
            if let Some(wanted) = volume.pointer_mut("/image/reference").and_then(|image| absolute(image, folder)) {
                missing.push((format!("{path}.volumes[{index}].image.reference"), wanted));
            }
        }
    }
    let problem = |(field, wanted): (String, String)| {
        let message = format!("there is no {wanted}: a path of an image is relative to the folder of its manifest");
        written.problem(file, &field, message)
    };
    missing.into_iter().map(problem).collect()
}

/// The path where nothing is, if that is so.
fn absolute(image: &mut Value, folder: &Path) -> Option<String> {
    let name = image.as_str().filter(|name| ImageTable::is_path(name) && !Path::new(name).is_absolute())?;
    let path = folder.join(name);
    match path.canonicalize() {
        Ok(path) => {
            *image = path.display().to_string().into();
            None
        }
        Err(_) => Some(path.display().to_string()),
    }
}

/// The items of a list, which need not be there.
fn items<'a>(object: &'a mut Value, list: &str) -> impl Iterator<Item = &'a mut Value> {
    object.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten()
}
