//! Files that may hold a secret: they are not packed, unless they are named.
//!
//! By their names, anywhere on this machine, so that links and other mounts of a home directory make no
//! difference; and by their contents. docs/security.md has the list.

use std::path::Path;

/// Files and folders, by the end of the path of the secret or of a folder around it.
const NAMES: [&str; 36] = [
    ".aws",
    ".azure",
    ".bash_history",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".config/chromium",
    ".config/gcloud",
    ".config/gh",
    ".config/google-chrome",
    ".config/hub",
    ".config/op",
    ".config/rclone",
    ".docker/config.json",
    ".env",
    ".git-credentials",
    ".gnupg",
    ".kube",
    ".local/share/keyrings",
    ".mozilla",
    ".my.cnf",
    ".mysql_history",
    ".netrc",
    ".password-store",
    ".pgpass",
    ".psql_history",
    ".pypirc",
    ".python_history",
    ".rediscli_history",
    ".ssh",
    ".terraform.d",
    ".vault-token",
    ".zsh_history",
    "etc/gshadow",
    "etc/shadow",
    "etc/ssl/private",
    "etc/sudoers",
];
/// Further copies of those in `/etc`.
const COPIES: [&str; 3] = ["/etc/gshadow-", "/etc/shadow-", "/etc/sudoers.d"];
/// Variants of `.env` with examples.
const EXAMPLES: [&str; 4] = [".dist", ".example", ".sample", ".template"];
/// The folders of packages, in which keys are examples.
const PACKAGED: [&str; 3] = ["/usr", "/lib", "/lib64"];

/// Whether a path without links may be that of a secret.
pub(super) fn is_secret_path(path: &Path) -> bool {
    let ends = |around: &Path| NAMES.iter().any(|name| around.ends_with(name));
    path.ancestors().any(ends)
        || COPIES.iter().any(|copy| path.starts_with(copy))
        || is_host_key(path)
        || is_env(path)
}

/// A key of sshd(8).
fn is_host_key(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    path.starts_with("/etc/ssh") && name.ends_with("_key")
}

/// A variant of `.env`, such as `.env.local`.
fn is_env(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.starts_with(".env.") && !EXAMPLES.iter().any(|end| name.ends_with(end))
}

/// Whether the contents of a file are a private key, or passwords of a package registry.
pub(super) fn is_secret_text(path: &Path, contents: &[u8]) -> bool {
    if PACKAGED.iter().any(|folder| path.starts_with(folder)) {
        return false;
    }
    let mut lines = contents.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    match path.file_name().is_some_and(|name| name == ".npmrc") {
        true => lines.any(|line| {
            let key = line.split(|&byte| byte == b'=').next().unwrap_or_default();
            let key = key.trim_ascii_end();
            [&b"_authToken"[..], b"_auth", b"_password"]
                .iter()
                .any(|end| key.ends_with(end))
        }),
        false => lines.any(|line| {
            line.starts_with(b"-----BEGIN ") && line.ends_with(b"PRIVATE KEY-----")
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that secrets are known by their names, wherever the home directory is, and others are not.
    #[test]
    fn names() {
        for secret in [
            "/home/me/.ssh/id_rsa",
            "/mnt/copy/.ssh",
            "/root/.aws/credentials",
            "/home/me/.docker/config.json",
            "/home/me/.config/gh/hosts.yml",
            "/etc/shadow",
            "/etc/shadow-",
            "/etc/ssh/ssh_host_rsa_key",
            "/srv/app/.env",
            "/srv/app/.env.production",
        ] {
            assert!(is_secret_path(Path::new(secret)), "{secret}");
        }
        for other in [
            "/etc/ssh/ssh_config",
            "/etc/passwd",
            "/home/me/.docker/other",
            "/srv/app/.env.example",
            "/srv/app/environment",
            "/usr/bin/ssh",
        ] {
            assert!(!is_secret_path(Path::new(other)), "{other}");
        }
    }

    /// Check that keys and tokens are known by the text, and that programs that have its parts are none.
    #[test]
    fn texts() {
        let is_secret =
            |path: &str, text: &str| is_secret_text(Path::new(path), text.as_bytes());
        // Split, so that this file is none.
        let key = concat!("-----BEGIN RSA PRIVATE ", "KEY-----\r\nAAAA\n");
        assert!(is_secret("/srv/key.pem", key));
        assert!(is_secret("/srv/key.pem", &format!("certificate\n{key}")));
        assert!(!is_secret("/usr/lib/python3/test/keycert.pem", key));
        assert!(!is_secret("/srv/a.c", &format!("char *s = \"{key}\";")));
        assert!(is_secret("/home/me/.npmrc", "a=b\n//registry/:_authToken = x\n"));
        assert!(!is_secret("/home/me/.npmrc", "fund=false\n"));
    }
}
