//! A shared library of the user, and a function in it (`dlopen(3)`, `dlsym(3)`).
//!
//! The library's initialisation and its function are foreign code: they may crash this process.
//! They run with the user's privileges, without the file capabilities of noisefloor: `work` drops
//! them before. A static program (the lab's agent) cannot load libraries.

#[cfg(not(target_feature = "crt-static"))]
use std::ffi::CStr;
use std::path::Path;
use units::Cause;

use crate::Error;

/// The names of the function, in the order in which they are tried: noisefloor's own, and those of
/// Intel's TIF, in its source (`tif_workload.c`) and in its README.
#[cfg(not(target_feature = "crt-static"))]
const NAMES: [&CStr; 3] = [c"nf_workload", c"nohz_workload", c"tif_workload"];

/// A loaded library. It is never unloaded: it may have left threads or pointers.
#[derive(Debug)]
pub(crate) struct Library {
    #[cfg(not(target_feature = "crt-static"))]
    handle: std::ptr::NonNull<libc::c_void>,
}

#[cfg(not(target_feature = "crt-static"))]
impl Library {
    /// Loads the library and its dependencies.
    pub(crate) fn load(file: &Path) -> Result<Self, Error> {
        use std::ffi::CString;
        use std::os::unix::ffi::OsStrExt;

        // A name without a slash would be searched for in the system's folders.
        let is_bare = !file.as_os_str().as_bytes().contains(&b'/');
        let file = if is_bare { Path::new(".").join(file) } else { file.to_owned() };
        let name = CString::new(file.as_os_str().as_bytes());
        let name =
            name.map_err(|_| refused("a file name must not contain a zero byte"))?;
        // SAFETY: `name` is a string that outlives the call. The library's initialisation runs
        // because the user requested it.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
        std::ptr::NonNull::new(handle)
            .map(|handle| Self { handle })
            .ok_or_else(|| refused(complaint()))
    }

    /// The function to repeat, without parameters and result: the first of [`NAMES`] that the
    /// library has.
    pub(crate) fn workload(&self) -> Result<extern "C" fn(), Error> {
        let mut missing = None;
        for name in NAMES {
            match self.function(name) {
                Ok(function) => return Ok(function),
                Err(why) => missing = missing.or(Some(why)),
            }
        }
        let help = "export it as: void nf_workload(void); TIF's nohz_workload and \
                    tif_workload are used, too";
        Err(refused(units::Helped::new(missing.unwrap_or_default(), help)))
    }

    /// The function of that name, or the loader's message.
    fn function(&self, name: &CStr) -> Result<extern "C" fn(), String> {
        // SAFETY: the library is never unloaded, and `name` outlives the call.
        let found = unsafe { libc::dlsym(self.handle.as_ptr(), name.as_ptr()) };
        if found.is_null() {
            return Err(complaint());
        }
        // SAFETY: users are instructed to export the symbol as such a function; this cannot be
        // checked.
        Ok(unsafe { std::mem::transmute::<*mut libc::c_void, extern "C" fn()>(found) })
    }
}

/// The loader's message about its last failure.
#[cfg(not(target_feature = "crt-static"))]
fn complaint() -> String {
    // SAFETY: takes no arguments.
    let words = unsafe { libc::dlerror() };
    if words.is_null() {
        return "the loader reports no reason".to_owned();
    }
    // SAFETY: the loader's string is valid until this thread's next call of the loader.
    unsafe { CStr::from_ptr(words) }.to_string_lossy().into_owned()
}

#[cfg(target_feature = "crt-static")]
impl Library {
    /// Always an error.
    pub(crate) fn load(_file: &Path) -> Result<Self, Error> {
        Err(refused("this program is linked statically and loads no libraries"))
    }

    /// Always an error.
    pub(crate) fn workload(&self) -> Result<extern "C" fn(), Error> {
        Err(refused("this program is linked statically and loads no libraries"))
    }
}

/// Refuses a file that does not exist, before a CPU is claimed. The file is not loaded, which would
/// run the library's code.
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

    /// Check that a missing library, and a file that is not one, are refused with the loader's
    /// message, and that a name without a folder is relative to the current one.
    #[test]
    fn loaders_words() {
        let said =
            |file: &str| units::chain(&Library::load(Path::new(file)).unwrap_err());
        assert!(said("libc.so.6").contains("./libc.so.6"), "{}", said("libc.so.6"));
        assert!(said("/proc/self/comm").contains("/proc/self/comm"));
        assert!(said("a\0b").contains("zero byte"));
    }

    /// Check that an exported function is found, and that the message names one that is not.
    #[test]
    fn functions_are_found() {
        // The C library of this program.
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
        let said = units::chain(&library.workload().unwrap_err());
        assert!(said.contains("undefined symbol: nf_workload"), "{said}");
        for name in NAMES {
            assert!(said.contains(name.to_str().unwrap()), "{said}");
        }
    }
}
