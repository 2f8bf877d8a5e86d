//! Identifiers of containers and images that there are not: the same for the same container, always.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// The id of a container's `n`th start.
pub(super) fn container_id(pod_uid: &str, container: &str, n: i32) -> String {
    format!("containerd://{}", hex(&(pod_uid, container, n)))
}

/// The image with everything that its short form leaves out.
pub(super) fn full_image(image: &str) -> String {
    let (repository, rest) = split(image);
    let rest = if rest.is_empty() { ":latest" } else { rest };
    format!("{}{rest}", full_repository(repository))
}

/// The image by its content.
pub(super) fn image_id(image: &str) -> String {
    let (repository, _) = split(image);
    format!("{}@sha256:{}", full_repository(repository), hex(&full_image(image)))
}

/// The image's repository, and its tag or digest with the character before it.
fn split(image: &str) -> (&str, &str) {
    let path_start = image.rfind('/').map_or(0, |at| at + 1);
    let end = image.find('@').or_else(|| image[path_start..].find(':').map(|at| at + path_start));
    image.split_at(end.unwrap_or(image.len()))
}

fn full_repository(repository: &str) -> String {
    match repository.split_once('/') {
        None => format!("docker.io/library/{repository}"),
        Some((host, _)) if host.contains(['.', ':']) || host == "localhost" => repository.to_owned(),
        Some(_) => format!("docker.io/{repository}"),
    }
}

/// 64 hexadecimal digits that follow from `of`.
fn hex(of: &impl std::hash::Hash) -> String {
    (0_u8..4)
        .map(|part| {
            let mut hasher = DefaultHasher::new();
            (part, of).hash(&mut hasher);
            format!("{:016x}", hasher.finish())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images() {
        for (short, full) in [
            ("nginx", "docker.io/library/nginx:latest"),
            ("bitnami/redis:7", "docker.io/bitnami/redis:7"),
            ("localhost:5000/a", "localhost:5000/a:latest"),
            ("registry.k8s.io/pause:3.10@sha256:ab", "registry.k8s.io/pause:3.10@sha256:ab"),
        ] {
            assert_eq!(full_image(short), full);
        }
        assert!(image_id("nginx:1").starts_with("docker.io/library/nginx@sha256:"));
        assert_eq!(container_id("u", "c", 0).len(), "containerd://".len() + 64);
        assert_ne!(container_id("u", "c", 0), container_id("u", "c", 1));
    }
}
