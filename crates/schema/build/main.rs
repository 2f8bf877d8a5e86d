//! Turns the fact tables in `facts/` into static Rust tables (`$OUT_DIR/tables.rs`). Every malformed row stops the
//! build with its file and line.

#![expect(clippy::print_stdout, reason = "a build script speaks to cargo on standard output")]

#[path = "../src/lookup.rs"]
#[expect(dead_code, reason = "only the library looks names up")]
mod lookup;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=facts");
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-changed=src/lookup.rs");
    let root = std::env::var("CARGO_MANIFEST_DIR")?;
    let facts = Path::new(&root).join("facts");
    let mut tables = Tables::default();
    let mut files: Vec<_> =
        std::fs::read_dir(facts.join("fields"))?.map(|entry| entry.map(|e| e.path())).collect::<Result<_, _>>()?;
    files.sort();
    for file in &files {
        tables.read_fields(file)?;
    }
    let mut out = tables.emit()?;
    emit_kinds(&mut out, &facts.join("kinds.tsv"), &tables)?;
    emit_resources(&mut out, &facts.join("resources.tsv"))?;
    emit_columns(&mut out, &facts.join("columns.tsv"))?;
    std::fs::write(Path::new(&std::env::var("OUT_DIR")?).join("tables.rs"), out)?;
    Ok(())
}

/// A type as its table has it: name, definition, whether it is atomic, its own fields.
struct RawType {
    definition: String,
    is_atomic: bool,
    fields: Vec<RawField>,
}

#[derive(Clone)]
struct RawField {
    /// Empty for an embedded struct.
    json: String,
    shape: String,
    flags: String,
    number: u32,
    patch_strategy: String,
    merge_key: String,
    list_type: String,
    list_keys: String,
    map_type: String,
    default: String,
    enumeration: String,
    format: String,
}

#[derive(Default)]
struct Tables {
    types: BTreeMap<String, RawType>,
    /// Shapes in order of their ids, as Rust source; equal shapes share one id.
    shapes: Vec<String>,
    shape_ids: BTreeMap<String, usize>,
}

impl Tables {
    fn read_fields(&mut self, file: &Path) -> Result<(), String> {
        let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
        let mut current = String::new();
        for (idx, line) in text.lines().enumerate().filter(|(_, l)| !l.starts_with('#') && !l.is_empty()) {
            let fail = |why: &str| format!("{}:{}: {why}", file.display(), idx + 1);
            let cell: Vec<&str> = line.split('\t').collect();
            let at = |n: usize| cell.get(n).filter(|c| **c != "-").map_or(String::new(), |c| (*c).to_owned());
            match cell[0] {
                "T" => {
                    current = at(1);
                    let raw = RawType { definition: at(2), is_atomic: at(3) == "atomic", fields: Vec::new() };
                    if self.types.insert(current.clone(), raw).is_some() {
                        return Err(fail("this type stands in the tables twice"));
                    }
                }
                "F" => {
                    let number = match at(4).as_str() {
                        "" => 0,
                        n => n.parse().map_err(|_| fail("the protobuf number is none"))?,
                    };
                    let field = RawField {
                        json: at(1),
                        shape: at(2),
                        flags: at(3),
                        number,
                        patch_strategy: at(5),
                        merge_key: at(6),
                        list_type: at(7),
                        list_keys: at(8),
                        map_type: at(9),
                        default: at(10),
                        enumeration: at(11),
                        format: at(12),
                    };
                    self.types
                        .get_mut(&current)
                        .ok_or_else(|| fail("a field before the first type"))?
                        .fields
                        .push(field);
                }
                _ => return Err(fail("a row is T or F")),
            }
        }
        Ok(())
    }

    fn type_id(&self, name: &str) -> Result<usize, String> {
        self.types.keys().position(|k| k == name).ok_or_else(|| format!("no table has the type {name}"))
    }

    /// The fields of a type with embedded structs' fields in their place.
    fn flat(&self, name: &str) -> Result<Vec<RawField>, String> {
        let mut out = Vec::new();
        for field in &self.types.get(name).ok_or_else(|| format!("no table has the type {name}"))?.fields {
            if field.json.is_empty() {
                let inner = field.shape.trim_start_matches('*').trim_start_matches('@');
                out.extend(self.flat(inner)?.into_iter().map(|f| RawField { number: 0, ..f }));
            } else {
                out.push(field.clone());
            }
        }
        Ok(out)
    }

    fn shape(&mut self, text: &str, field: Option<&RawField>) -> Result<usize, String> {
        let text = text.trim_start_matches('*');
        let source = if let Some(item) = text.strip_prefix("[]") {
            let item = self.shape(item, None)?;
            let kind = match field.map_or("", |f| f.list_type.as_str()) {
                "map" => {
                    let keys = field.map_or("", |f| f.list_keys.as_str());
                    let keys: Vec<String> = keys.split(',').map(|k| format!("{k:?}")).collect();
                    format!("ListKind::Map(Keys::Static(&[{}]))", keys.join(","))
                }
                "set" => "ListKind::Set".to_owned(),
                _ => "ListKind::Atomic".to_owned(),
            };
            format!("Shape::List {{ item: ShapeId({item}), kind: {kind} }}")
        } else if let Some(value) = text.strip_prefix("{}") {
            let value = self.shape(value, None)?;
            let is_atomic = field.is_some_and(|f| f.map_type == "atomic");
            format!("Shape::Map {{ value: ShapeId({value}), is_atomic: {is_atomic} }}")
        } else if let Some(name) = text.strip_prefix('@') {
            let id = self.type_id(name)?;
            let is_atomic = match field.map_or("", |f| f.map_type.as_str()) {
                "atomic" => true,
                "granular" => false,
                _ => self.types[name].is_atomic,
            };
            format!("Shape::Struct {{ id: TypeId({id}), is_atomic: {is_atomic} }}")
        } else {
            let variant = match text {
                "string" => "String",
                "bool" => "Bool",
                "int32" | "uint32" | "int" => "Int32",
                "int64" | "uint64" => "Int64",
                "float64" => "Float",
                "bytes" => "Bytes",
                "time" => "Time",
                "microtime" => "MicroTime",
                "quantity" => "Quantity",
                "intorstring" => "IntOrString",
                "rawextension" | "json" => "Raw",
                "fieldsv1" => "FieldsV1",
                "schemaorbool" => "SchemaOrBool",
                "schemaorarray" => "SchemaOrArray",
                "schemaorstrings" => "SchemaOrStrings",
                "stringlist" => "StringList",
                other => return Err(format!("no shape is called {other:?}")),
            };
            format!("Shape::{variant}")
        };
        if let Some(&id) = self.shape_ids.get(&source) {
            return Ok(id);
        }
        let id = self.shapes.len();
        self.shape_ids.insert(source.clone(), id);
        self.shapes.push(source);
        Ok(id)
    }

    fn emit(&mut self) -> Result<String, Box<dyn std::error::Error>> {
        let names: Vec<String> = self.types.keys().cloned().collect();
        let (mut fields, mut types, mut messages) = (String::new(), String::new(), String::new());
        let (mut n_fields, mut n_messages) = (0, 0);
        let mut lookup_tables = Vec::new();
        for name in &names {
            let mut flat = self.flat(name)?;
            flat.sort_by(|a, b| a.json.cmp(&b.json));
            let first = n_fields;
            let mut table = vec![0u8; lookup::table_len(flat.len())];
            lookup::fill(&mut table, flat.iter().map(|f| f.json.as_str()));
            table.resize(flat.len() * lookup::TABLE_BYTES_PER_FIELD, 0);
            lookup_tables.extend(table);
            for field in &flat {
                let shape = self.shape(&field.shape, Some(field))?;
                emit_field(&mut fields, field, shape)?;
                n_fields += 1;
            }
            let first_message = n_messages;
            let mut own: Vec<_> = self.types[name].fields.iter().enumerate().collect();
            own.sort_by_key(|(_, f)| f.number);
            for (declared, field) in own.into_iter().filter(|(_, f)| f.number > 0) {
                let slot = if field.json.is_empty() {
                    let inner = field.shape.trim_start_matches('*').trim_start_matches('@');
                    let is_pointer = field.shape.starts_with('*');
                    format!("Slot::Embedded {{ id: TypeId({}), is_pointer: {is_pointer} }}", self.type_id(inner)?)
                } else {
                    let idx = first + flat.iter().position(|f| f.json == field.json).ok_or("a field vanished")?;
                    format!("Slot::Field({idx})")
                };
                writeln!(messages, "MessageField {{ number: {}, declared: {declared}, slot: {slot} }},", field.number)?;
                n_messages += 1;
            }
            let shape = self.shape(&format!("@{name}"), None)?;
            let raw = &self.types[name];
            writeln!(
                types,
                "Type {{ name: {name:?}, definition: {:?}, fields: Range {{ first: {first}, len: {} }}, message: Range {{ first: {first_message}, len: {} }}, shape: ShapeId({shape}), is_atomic: {}, others: None }},",
                raw.definition,
                flat.len(),
                n_messages - first_message,
                raw.is_atomic,
            )?;
        }
        let mut out = String::new();
        writeln!(out, "static TYPES: [Type; {}] = [\n{types}];", names.len())?;
        writeln!(out, "static FIELDS: [Field; {n_fields}] = [\n{fields}];")?;
        writeln!(out, "static LOOKUP: [u8; {}] = {lookup_tables:?};", lookup_tables.len())?;
        writeln!(out, "static MESSAGE_FIELDS: [MessageField; {n_messages}] = [\n{messages}];")?;
        writeln!(out, "static SHAPES: [Shape; {}] = [\n{},\n];", self.shapes.len(), self.shapes.join(",\n"))?;
        Ok(out)
    }
}

fn emit_field(out: &mut String, field: &RawField, shape: usize) -> Result<(), Box<dyn std::error::Error>> {
    let has = |flag: char| field.flags.contains(flag);
    let enumeration: Vec<String> =
        field.enumeration.split(',').filter(|e| !e.is_empty()).map(|e| format!("{e:?}")).collect();
    let is_merge = field.patch_strategy.split(',').any(|s| s == "merge");
    let is_replace = field.patch_strategy.split(',').any(|s| s == "replace");
    let retains_keys = field.patch_strategy.split(',').any(|s| s == "retainKeys");
    // the table gives bare words for some string defaults
    let default = match field.default.as_str() {
        "default" => "\"default\"",
        other => other,
    };
    writeln!(
        out,
        "Field {{ name: Str::const_new({:?}), shape: ShapeId({shape}), is_pointer: {}, omit_empty: {}, omit_zero: {}, is_required: {}, patch_merge: {is_merge}, patch_replace: {is_replace}, patch_retain_keys: {retains_keys}, patch_merge_key: {:?}, default: Str::const_new({default:?}), enumeration: &[{}], format: {:?} }},",
        field.json,
        field.shape.starts_with('*'),
        has('e'),
        has('z'),
        has('r'),
        field.merge_key,
        enumeration.join(","),
        field.format,
    )?;
    Ok(())
}

fn rows(file: &Path) -> Result<Vec<Vec<String>>, String> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    Ok(text
        .lines()
        .filter(|l| !l.starts_with('#') && !l.is_empty())
        .map(|l| l.split('\t').map(|c| if c == "-" { String::new() } else { c.to_owned() }).collect())
        .collect())
}

fn emit_kinds(out: &mut String, file: &Path, tables: &Tables) -> Result<(), Box<dyn std::error::Error>> {
    let mut kinds = rows(file)?;
    kinds.sort();
    writeln!(out, "static KINDS: [Kind; {}] = [", kinds.len())?;
    for kind in &kinds {
        let [group, version, name, ty] = &kind[..] else {
            return Err(format!("{}: four cells a row", file.display()).into());
        };
        let id = tables.type_id(ty)?;
        writeln!(out, "Kind {{ group: {group:?}, version: {version:?}, kind: {name:?}, id: TypeId({id}) }},")?;
    }
    writeln!(out, "];")?;
    Ok(())
}

fn emit_resources(out: &mut String, file: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let rows = rows(file)?;
    writeln!(out, "static RESOURCES: [Resource; {}] = [", rows.len())?;
    let list =
        |text: &str| text.split(',').filter(|s| !s.is_empty()).map(|s| format!("{s:?}")).collect::<Vec<_>>().join(",");
    for row in &rows {
        let [group_version, resource, kind, scope, singular, verbs, short, categories, response, hash] = &row[..]
        else {
            return Err(format!("{}: ten cells a row", file.display()).into());
        };
        let (group, version) = group_version.split_once('/').unwrap_or(("", group_version));
        let (plural, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        let (kind_group, kind_version) = match response.split_once('/') {
            Some(pair) => pair,
            None => (group, version),
        };
        writeln!(
            out,
            "Resource {{ group: {group:?}, version: {version:?}, plural: {plural:?}, subresource: {subresource:?}, kind: {kind:?}, kind_group: {kind_group:?}, kind_version: {kind_version:?}, is_namespaced: {}, singular: {singular:?}, verbs: &[{}], short_names: &[{}], categories: &[{}], storage_version_hash: {hash:?} }},",
            scope == "namespaced",
            list(verbs),
            list(short),
            list(categories),
        )?;
    }
    writeln!(out, "];")?;
    Ok(())
}

fn emit_columns(out: &mut String, file: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let rows = rows(file)?;
    writeln!(out, "static COLUMNS: [Column; {}] = [", rows.len())?;
    for row in &rows {
        let [group_version, resource, name, kind, format, priority] = &row[..] else {
            return Err(format!("{}: six cells a row", file.display()).into());
        };
        let (group, version) = group_version.split_once('/').unwrap_or(("", group_version));
        writeln!(
            out,
            "Column {{ group: {group:?}, version: {version:?}, resource: {resource:?}, name: {name:?}, kind: {kind:?}, format: {format:?}, priority: {priority} }},"
        )?;
    }
    writeln!(out, "];")?;
    Ok(())
}
