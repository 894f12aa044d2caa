//! A user's shared library, and a function in it (`dlopen(3)`, `dlsym(3)`).
//!
//! What the library does when it is loaded, and in its function, is its own: it may crash,
//! and this process with it. It has the user's rights, and no capability that only this program's
//! file has: `work` drops them before. A static program (the lab's agent) cannot load any.

use std::ffi::CStr;
use std::path::Path;
use units::Cause;

use crate::Error;

/// A loaded library. It is never unloaded: nobody knows what it left behind.
#[derive(Debug)]
pub(crate) struct Library {
    #[cfg(not(target_feature = "crt-static"))]
    handle: std::ptr::NonNull<libc::c_void>,
}

#[cfg(not(target_feature = "crt-static"))]
impl Library {
    /// Loads it, with all that it needs.
    pub(crate) fn load(file: &Path) -> Result<Self, Error> {
        use std::ffi::CString;
        use std::os::unix::ffi::OsStrExt;

        // A bare name would be looked for in the system's folders.
        let is_bare = !file.as_os_str().as_bytes().contains(&b'/');
        let file = if is_bare { Path::new(".").join(file) } else { file.to_owned() };
        let name = CString::new(file.as_os_str().as_bytes());
        let name = name.map_err(|_| refused("a file's name has no zero byte"))?;
        // SAFETY: `name` is a string that outlives the call. The library's own
        // initialisation is what the user asked for.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
        std::ptr::NonNull::new(handle)
            .map(|handle| Self { handle })
            .ok_or_else(|| refused(complaint()))
    }

    /// The function of that name, which takes and returns nothing.
    pub(crate) fn function(&self, name: &CStr) -> Result<extern "C" fn(), Error> {
        // SAFETY: the library is never unloaded, and `name` outlives the call.
        let found = unsafe { libc::dlsym(self.handle.as_ptr(), name.as_ptr()) };
        if found.is_null() {
            let help = "export it as: void nf_workload(void)";
            return Err(refused(units::Helped::new(complaint(), help)));
        }
        // SAFETY: that a symbol of this name is such a function is what users are told to
        // export it as; nobody else can know.
        Ok(unsafe { std::mem::transmute::<*mut libc::c_void, extern "C" fn()>(found) })
    }
}

/// The loader's own words about what failed last.
#[cfg(not(target_feature = "crt-static"))]
fn complaint() -> String {
    // SAFETY: takes no arguments.
    let words = unsafe { libc::dlerror() };
    if words.is_null() {
        return "the loader does not say why".to_owned();
    }
    // SAFETY: the loader's string stays until this thread's next call of the loader.
    unsafe { CStr::from_ptr(words) }.to_string_lossy().into_owned()
}

#[cfg(target_feature = "crt-static")]
impl Library {
    /// Says that it cannot be.
    pub(crate) fn load(_file: &Path) -> Result<Self, Error> {
        Err(refused("this program is linked statically and loads no libraries"))
    }

    /// Says that it cannot be.
    pub(crate) fn function(&self, _name: &CStr) -> Result<extern "C" fn(), Error> {
        Err(refused("this program is linked statically and loads no libraries"))
    }
}

/// Refuses a file that does not exist, before a CPU is claimed. The file is not loaded, which would
/// run the library's own code.
pub(crate) fn exists(file: &Path) -> Result<(), Error> {
    let found = std::fs::metadata(file);
    found.map(drop).map_err(|error| refused(format!("{}: {error}", file.display())))
}

fn refused(why: impl Into<Cause>) -> Error {
    Error::caused(crate::Kind::Spec, "failed to use the workload's library", why)
}

#[cfg(all(test, not(target_feature = "crt-static")))]
mod tests {
    use super::*;

    /// Check that a library that is not there, and a file that is none, are refused in the
    /// loader's words, and that a name without a folder is one of this folder.
    #[test]
    fn loaders_words() {
        let said =
            |file: &str| units::chain(&Library::load(Path::new(file)).unwrap_err());
        assert!(said("libc.so.6").contains("./libc.so.6"), "{}", said("libc.so.6"));
        assert!(said("/proc/self/comm").contains("/proc/self/comm"));
        assert!(said("a\0b").contains("zero byte"));
    }

    /// Check that a function is found where there is one, and where not, that the message
    /// names it.
    #[test]
    fn functions_are_found() {
        // This program's own C library, wherever it lies.
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let Some(file) = maps.lines().find_map(|line| {
            let file = line.split_ascii_whitespace().nth(5)?;
            file.contains("/libc.so").then(|| file.to_owned())
        }) else {
            println!("skipped: functions_are_found: there is no shared C library");
            return;
        };
        let library = Library::load(Path::new(&file)).unwrap();
        assert!(library.function(c"abort").is_ok());
        let said = units::chain(&library.function(c"nf_workload").unwrap_err());
        assert!(said.contains("undefined symbol: nf_workload"), "{said}");
        assert!(said.contains("void nf_workload(void)"), "{said}");
    }
}
