//! An object of BPF programs, as `build.rs` compiled it: opened, configured and loaded.
//!
//! Maps, programs and variables have the names of the C source. The places of variables are in the
//! object's BTF.

use std::collections::BTreeMap;

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{DataSec, Var};
use libbpf_rs::{
    Map, MapCore as _, MapFlags, Object, ObjectBuilder, OpenObject, ProgramMut,
};

use crate::bpf::attached::failed;
use crate::error::{Error, Kind};

/// The sections of constants, and of variables that programs read at any time.
const CONSTANTS: &str = ".rodata";
const VARIABLES: &str = ".bss";

/// A number in a BPF program's data, in the byte order of this machine.
pub(crate) trait Number: Copy {
    /// Its bytes.
    fn bytes(self) -> impl AsRef<[u8]>;
}

macro_rules! numbers {
    ($($kind:ty),*) => {
        $(impl Number for $kind {
            fn bytes(self) -> impl AsRef<[u8]> {
                self.to_ne_bytes()
            }
        })*
    };
}
numbers!(u8, u16, u32, u64);

/// An opened object: its maps have no memory yet, and its constants can be set.
pub(crate) struct Opened {
    object: OpenObject,
    constants: Section,
    variables: Section,
}

/// The offset and size of each variable of a section.
type Section = BTreeMap<String, (usize, usize)>;

impl Opened {
    /// Opens an object, whose name is part of its maps' names.
    ///
    /// # Errors
    /// It is not valid.
    pub(crate) fn open(name: &str, file: &[u8]) -> Result<Self, Error> {
        let mut builder = ObjectBuilder::default();
        let builder = builder.name(name).map_err(failed)?;
        let object = builder.open_memory(file).map_err(failed)?;
        let types = Btf::from_raw(name, file).map_err(failed)?;
        let types = types.ok_or_else(|| missing("BTF"))?;
        let (constants, variables) =
            (section(&types, CONSTANTS), section(&types, VARIABLES));
        Ok(Self { object, constants, variables })
    }

    /// Sets the number of elements of a map.
    ///
    /// # Errors
    /// There is no such map, or it cannot have that many.
    pub(crate) fn set_capacity(&mut self, map: &str, elements: u32) -> Result<(), Error> {
        let mut maps = self.object.maps_mut();
        let mut map = maps.find(|it| it.name() == map).ok_or_else(|| missing(map))?;
        map.set_max_entries(elements).map_err(failed)
    }

    /// Sets the first elements of a constant, which is a number or an array of numbers.
    ///
    /// # Errors
    /// There is no such constant, or it is shorter.
    pub(crate) fn set(
        &mut self,
        name: &str,
        values: &[impl Number],
    ) -> Result<(), Error> {
        let mut maps = self.object.maps_mut();
        let map = maps.find(|map| map.name().to_string_lossy().ends_with(CONSTANTS));
        let mut map = map.ok_or_else(|| missing(CONSTANTS))?;
        let data = map.initial_value_mut().ok_or_else(|| missing(CONSTANTS))?;
        write(data, &self.constants, name, values)
    }

    /// Chooses the programs that are loaded, by their names.
    pub(crate) fn choose(&mut self, is_needed: impl Fn(&str) -> bool) {
        for mut program in self.object.progs_mut() {
            let is_needed = is_needed(&program.name().to_string_lossy());
            program.set_autoload(is_needed);
        }
    }

    /// Loads the maps and the chosen programs into the kernel.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(crate) fn load(self) -> Result<Loaded, Error> {
        let object = self.object.load().map_err(failed)?;
        Ok(Loaded { object, variables: self.variables })
    }
}

/// A loaded object. Its programs run only where they are attached.
pub(crate) struct Loaded {
    object: Object,
    variables: Section,
}

impl Loaded {
    /// The map of that name.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn map(&self, name: &str) -> Result<Map<'_>, Error> {
        self.object.maps().find(|map| map.name() == name).ok_or_else(|| missing(name))
    }

    /// The program of that name.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn program(&self, name: &str) -> Result<ProgramMut<'_>, Error> {
        let mut programs = self.object.progs_mut();
        programs.find(|program| program.name() == name).ok_or_else(|| missing(name))
    }

    /// Sets a variable, which programs may read meanwhile. The others of its section are written
    /// with the values that they have.
    ///
    /// # Errors
    /// There is none, or the kernel refuses.
    pub(crate) fn set(&self, name: &str, value: impl Number) -> Result<(), Error> {
        let mut maps = self.object.maps();
        let map = maps.find(|map| map.name().to_string_lossy().ends_with(VARIABLES));
        let map = map.ok_or_else(|| missing(VARIABLES))?;
        let key = 0_u32.to_ne_bytes();
        let data = map.lookup(&key, MapFlags::ANY).map_err(failed)?;
        let mut data = data.ok_or_else(|| missing(VARIABLES))?;
        write(&mut data, &self.variables, name, &[value])?;
        map.update(&key, &data, MapFlags::ANY).map_err(failed)
    }
}

/// The variables of a section; none if the object does not have it.
fn section(types: &Btf<'_>, name: &str) -> Section {
    let Some(section) = types.type_by_name::<DataSec<'_>>(name) else {
        return Section::new();
    };
    let named = section.iter().filter_map(|variable| {
        let name = types.type_by_id::<Var<'_>>(variable.ty)?.name()?;
        let place = (usize::try_from(variable.offset).ok()?, variable.size);
        Some((name.to_string_lossy().into_owned(), place))
    });
    named.collect()
}

fn write(
    data: &mut [u8],
    section: &Section,
    name: &str,
    values: &[impl Number],
) -> Result<(), Error> {
    let (offset, size) = *section.get(name).ok_or_else(|| missing(name))?;
    let variable = data.get_mut(offset..offset + size).ok_or_else(|| missing(name))?;
    let bytes: Vec<u8> =
        values.iter().flat_map(|value| value.bytes().as_ref().to_vec()).collect();
    let start = variable.get_mut(..bytes.len()).ok_or_else(|| missing(name))?;
    start.copy_from_slice(&bytes);
    Ok(())
}

fn missing(what: &str) -> Error {
    Error::new(Kind::System, format!("the eBPF object has no fitting {what}"))
}

/// The layouts of structures that the BPF programs and this crate have in common.
#[cfg(test)]
pub(crate) mod layout {
    use libbpf_rs::btf::Btf;
    use libbpf_rs::btf::HasSize as _;
    use libbpf_rs::btf::types::{MemberAttr, Struct};

    /// Check that a structure of an object has that size, and these fields at these offsets.
    pub(crate) fn check(file: &[u8], name: &str, size: usize, fields: &[(&str, usize)]) {
        let types = Btf::from_raw("layout", file).unwrap().unwrap();
        let known = types.type_by_name::<Struct<'_>>(name).unwrap();
        assert_eq!(known.size(), size, "{name}");
        let offset = |attribute| match attribute {
            MemberAttr::Normal { offset } => offset as usize / 8,
            MemberAttr::BitField { .. } => panic!("{name} has bit fields"),
        };
        let members: Vec<_> = known
            .iter()
            .map(|member| (member.name.unwrap().to_str().unwrap(), offset(member.attr)))
            .collect();
        assert_eq!(members, fields, "{name}");
    }

    /// Checks a structure's fields against the structure of the same name in an object's BTF.
    macro_rules! check_layout {
        ($file:expr, $name:literal, $kind:ty { $($field:ident),* }) => {
            $crate::bpf::object::layout::check(
                $file,
                $name,
                size_of::<$kind>(),
                &[$((
                    stringify!($field).trim_start_matches("r#"),
                    std::mem::offset_of!($kind, $field),
                )),*],
            )
        };
    }
    pub(crate) use check_layout;
}
