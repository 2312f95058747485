//! Structs and maps.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, ListArray, MapArray, StructArray, UInt32Array,
};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute::{SortOptions, cast, concat, take};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion::arrow::row::{RowConverter, Rows, SortField};
use datafusion::common::{Result, ScalarValue, plan_datafusion_err, plan_err};
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;

use crate::scalar::call::Call;
use crate::scalar::entry::{Arguments, Entry, Takes, flag, texts};
use crate::scalar::text::texts::entry;

fn fields(data_type: &DataType) -> Result<&Fields> {
    match data_type {
        DataType::Struct(fields) => Ok(fields),
        _ => plan_err!("expected a struct"),
    }
}

fn constant_text(value: Option<&ScalarValue>) -> Option<&str> {
    value.and_then(|value| value.try_as_str().flatten())
}

/// Returns the field that a constant names or numbers.
fn field<'a>(
    given: &'a [DataType],
    constant: Option<&ScalarValue>,
) -> Result<(usize, &'a FieldRef)> {
    let fields = fields(&given[0])?;
    let found = match constant {
        Some(ScalarValue::Int64(Some(number))) => {
            usize::try_from(*number - 1).ok().filter(|at| *at < fields.len())
        }
        name => match constant_text(name) {
            Some(name) => fields.iter().position(|field| field.name().eq_ignore_ascii_case(name)),
            None => return plan_err!("struct_extract: the name of a field must be a constant"),
        },
    };
    found.map(|at| (at, &fields[at])).ok_or_else(|| {
        let names: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
        plan_datafusion_err!("the struct has no such field; its fields are {}", names.join(", "))
    })
}

fn struct_extract(call: &Call) -> Result<ArrayRef> {
    let types = [call.arrays[0].data_type().clone()];
    let constant = match call.rows {
        0 => return Ok(datafusion::arrow::array::new_empty_array(&call.result)),
        _ => ScalarValue::try_from_array(&call.arrays[1], 0)?,
    };
    let (at, _) = field(&types, Some(&constant))?;
    let structs = call.arrays[0].as_struct();
    let nulls = NullBuffer::union(structs.nulls(), structs.column(at).logical_nulls().as_ref());
    let data = structs.column(at).to_data().into_builder().nulls(nulls);
    match structs.nulls() {
        Some(_) if !structs.column(at).data_type().is_null() => {
            Ok(datafusion::arrow::array::make_array(data.build()?))
        }
        _ => Ok(Arc::clone(structs.column(at))),
    }
}

/// Adds or replaces fields of a struct, named by constants.
fn changed(
    given: &[DataType],
    constants: &[Option<&ScalarValue>],
    replaces: bool,
) -> Result<DataType> {
    let mut all: Vec<FieldRef> = fields(&given[0])?.iter().cloned().collect();
    for at in (1..given.len()).step_by(2) {
        let Some(name) = constant_text(constants.get(at).copied().flatten()) else {
            return plan_err!("fields are given as name := value");
        };
        let Some(data_type) = given.get(at + 1) else { return plan_err!("{name} has no value") };
        let new = Arc::new(Field::new(name, data_type.clone(), true));
        match all.iter().position(|field| field.name().eq_ignore_ascii_case(name)) {
            Some(at) if replaces => all[at] = new,
            Some(_) => {
                return plan_err!(
                    "the struct has a field '{name}' already; struct_update changes it"
                );
            }
            None => all.push(new),
        }
    }
    Ok(DataType::Struct(all.into()))
}

fn change(call: &Call) -> Result<ArrayRef> {
    let fields = fields(&call.result)?;
    let structs = call.arrays[0].as_struct();
    let mut columns: Vec<ArrayRef> = structs.columns().to_vec();
    columns.resize(
        fields.len(),
        structs.columns().first().map_or_else(|| Arc::clone(&call.arrays[0]), Arc::clone),
    );
    for at in (1..call.count()).step_by(2) {
        let names = call.text(at);
        if names.is_empty() {
            break;
        }
        let name = names.value(0);
        if let Some(place) = fields.iter().position(|field| field.name().eq_ignore_ascii_case(name))
        {
            columns[place] = Arc::clone(&call.arrays[at + 1]);
        }
    }
    if call.rows == 0 {
        return Ok(datafusion::arrow::array::new_empty_array(&call.result));
    }
    Ok(Arc::new(StructArray::try_new(fields.clone(), columns, structs.nulls().cloned())?))
}

fn struct_concat(call: &Call) -> Result<ArrayRef> {
    let columns = call.arrays.iter().flat_map(|array| array.as_struct().columns().to_vec());
    Ok(Arc::new(StructArray::try_new(fields(&call.result)?.clone(), columns.collect(), None)?))
}

fn concat_type(given: &[DataType], _: &[Option<&ScalarValue>]) -> Result<DataType> {
    let mut names = HashSet::new();
    let mut all: Vec<FieldRef> = Vec::new();
    for one in given {
        for field in fields(one)? {
            if !names.insert(field.name().to_lowercase()) {
                return plan_err!("both structs have a field '{}'", field.name());
            }
            all.push(Arc::new(field.as_ref().clone().with_nullable(true)));
        }
    }
    Ok(DataType::Struct(all.into()))
}

fn struct_keys(call: &Call) -> Result<ArrayRef> {
    let structs = call.arrays[0].as_struct();
    let names: Vec<&str> = structs.fields().iter().map(|field| field.name().as_str()).collect();
    call.text_lists(|_, out| {
        names.iter().for_each(|name| out.values().append_value(name));
        Ok(true)
    })
}

/// Returns the key and value types of a map type.
fn pair(map: &DataType) -> Result<(&FieldRef, &FieldRef)> {
    if let DataType::Map(entries, _) = map
        && let DataType::Struct(fields) = entries.data_type()
        && let [key, value] = &fields[..]
    {
        return Ok((key, value));
    }
    plan_err!("expected a map")
}

/// Whether a type is a map that is not always NULL.
fn has_keys(map: &DataType) -> bool {
    pair(map).is_ok_and(|(key, _)| !key.data_type().is_null())
}

fn keys_of(values: &ArrayRef) -> Result<Rows> {
    let field = SortField::new_with_options(values.data_type().clone(), SortOptions::default());
    Ok(RowConverter::new(vec![field])?.convert_columns(std::slice::from_ref(values))?)
}

/// Converts the keys or values of a map and other values to comparable keys of their common type.
fn compared(there: &ArrayRef, wanted: &ArrayRef) -> Result<(Rows, Rows)> {
    let common = comparison_coercion(there.data_type(), wanted.data_type());
    let common = common.unwrap_or_else(|| there.data_type().clone());
    let converter = RowConverter::new(vec![SortField::new(common.clone())])?;
    let keys = |of: &ArrayRef| converter.convert_columns(&[cast(of, &common)?]);
    Ok((keys(there)?, keys(wanted)?))
}

/// Returns the index of the entry whose key (0) or value (1) equals an argument, if any.
fn find(call: &Call, part: usize) -> Result<Vec<Option<u32>>> {
    let maps = call.arrays[0].as_map();
    let inside = maps.entries().column(part);
    let (there, wanted) = compared(inside, &call.arrays[1])?;
    let offsets = maps.value_offsets();
    let place = |row: usize| {
        if maps.is_null(row) || call.arrays[1].is_null(row) {
            return None;
        }
        let mut places = offsets[row] as usize..offsets[row + 1] as usize;
        places.find(|&at| there.row(at) == wanted.row(row)).map(|at| at as u32)
    };
    Ok((0..call.rows).map(place).collect())
}

fn has(call: &Call, part: usize) -> Result<ArrayRef> {
    let found = find(call, part)?;
    let flags: BooleanArray = found
        .iter()
        .enumerate()
        .map(|(row, place)| (!call.is_null(row)).then_some(place.is_some()))
        .collect();
    Ok(Arc::new(flags))
}

fn map_extract_value(call: &Call) -> Result<ArrayRef> {
    let values = call.arrays[0].as_map().values();
    Ok(take(values, &UInt32Array::from(find(call, 0)?), None)?)
}

/// Returns the value of a key as a list, which is empty if the map lacks the key.
fn map_extract(call: &Call) -> Result<ArrayRef> {
    let maps = call.arrays[0].as_map();
    let found = find(call, 0)?;
    let offsets = OffsetBuffer::from_lengths(found.iter().map(|at| usize::from(at.is_some())));
    let places: UInt32Array = found.into_iter().flatten().map(Some).collect();
    let values = take(maps.values(), &places, None)?;
    let DataType::List(item) = &call.result else { return plan_err!("expected a list") };
    Ok(Arc::new(ListArray::try_new(Arc::clone(item), offsets, values, maps.nulls().cloned())?))
}

fn map_contains_entry(call: &Call) -> Result<ArrayRef> {
    let values = call.arrays[0].as_map().values();
    let (there, wanted) = compared(values, &call.arrays[2])?;
    let found = find(call, 0)?;
    call.flags(|row| {
        Ok(Some(found[row].is_some_and(|at| there.row(at as usize) == wanted.row(row))))
    })
}

/// Builds a map from the selected keys and values, and checks it.
fn mapped(
    call: &Call,
    (keys, values): (ArrayRef, ArrayRef),
    lengths: Vec<usize>,
    valid: NullBuffer,
) -> Result<ArrayRef> {
    if keys.logical_null_count() > 0 {
        return call.fails("a key of a map is NULL");
    }
    let rows = keys_of(&keys)?;
    let mut at = 0;
    for length in &lengths {
        let mut seen = HashSet::with_capacity(*length);
        if !(at..at + length).all(|place| seen.insert(rows.row(place))) {
            return call.fails("the keys of a map must differ");
        }
        at += length;
    }
    let (key, value) = pair(&call.result)?;
    let keys = cast(&keys, key.data_type())?;
    let values = cast(&values, value.data_type())?;
    let DataType::Map(entries, _) = &call.result else { return plan_err!("expected a map") };
    let inside =
        StructArray::try_new(fields(entries.data_type())?.clone(), vec![keys, values], None)?;
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(MapArray::try_new(Arc::clone(entries), offsets, inside, Some(valid), false)?))
}

pub(in crate::scalar) fn map_type(key: &DataType, value: &DataType) -> DataType {
    let fields = Fields::from(vec![
        Field::new("key", key.clone(), false),
        Field::new("value", value.clone(), true),
    ]);
    DataType::Map(Arc::new(Field::new("entries", DataType::Struct(fields), false)), false)
}

fn map_from_entries(call: &Call) -> Result<ArrayRef> {
    let lists: &ListArray = call.list(0);
    let (mut places, mut lengths) = (Vec::new(), Vec::new());
    for row in 0..call.rows {
        let range = match lists.is_null(row) {
            true => 0..0,
            false => lists.value_offsets()[row]..lists.value_offsets()[row + 1],
        };
        lengths.push(range.len());
        places.extend(range.map(|at| at as u32));
    }
    let entries = take(lists.values(), &UInt32Array::from(places), None)?;
    let entries = entries.as_struct();
    let valid = (0..call.rows).map(|row| lists.is_valid(row)).collect();
    mapped(call, (entries.column(0).clone(), entries.column(1).clone()), lengths, valid)
}

fn entries_type(given: &[DataType], _: &[Option<&ScalarValue>]) -> Result<DataType> {
    if let DataType::List(item) = &given[0]
        && let DataType::Struct(fields) = item.data_type()
        && let [key, value] = &fields[..]
    {
        return Ok(map_type(key.data_type(), value.data_type()));
    }
    plan_err!("map_from_entries expects a list of structs with a key and a value")
}

/// Concatenates maps; a key keeps its first position and gets its last value.
fn map_concat(call: &Call) -> Result<ArrayRef> {
    let (key, value) = pair(&call.result)?;
    let part = |at: usize, to: &DataType| -> Result<ArrayRef> {
        let parts: Result<Vec<ArrayRef>> = call
            .arrays
            .iter()
            .map(|array| Ok(cast(array.as_map().entries().column(at), to)?))
            .collect();
        let parts = parts?;
        let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
        Ok(concat(&parts)?)
    };
    let (keys, values) = (part(0, key.data_type())?, part(1, value.data_type())?);
    let rows = keys_of(&keys)?;
    let (mut of_keys, mut of_values, mut lengths) = (vec![], vec![], vec![]);
    for row in 0..call.rows {
        let (mut own, mut base): (Vec<(u32, u32)>, usize) = (vec![], 0);
        for array in &call.arrays {
            let map = array.as_map();
            if map.is_valid(row) {
                for at in map.value_offsets()[row]..map.value_offsets()[row + 1] {
                    let at = (base + at as usize) as u32;
                    match own
                        .iter_mut()
                        .find(|(key, _)| rows.row(*key as usize) == rows.row(at as usize))
                    {
                        Some((_, value)) => *value = at,
                        None => own.push((at, at)),
                    }
                }
            }
            base += map.entries().len();
        }
        lengths.push(own.len());
        of_keys.extend(own.iter().map(|(key, _)| *key));
        of_values.extend(own.iter().map(|(_, value)| *value));
    }
    let keys = take(&keys, &UInt32Array::from(of_keys), None)?;
    let values = take(&values, &UInt32Array::from(of_values), None)?;
    let valid =
        (0..call.rows).map(|row| call.arrays.iter().any(|array| array.is_valid(row))).collect();
    mapped(call, (keys, values), lengths, valid)
}

const MAP_AND_ANY: &[Arguments] = &[Arguments::Are(&[Takes::Map, Takes::Any])];
const STRUCTS: &[Arguments] = &[Arguments::More(&[Takes::Struct], Takes::Struct)];
const STRUCT_AND_FIELDS: &[Arguments] = &[Arguments::More(&[Takes::Struct], Takes::Any)];

pub(in crate::scalar) static ENTRIES: &[&[Entry]] = &[&[
    entry!("struct_extract" [], "struct, field", 
        &[Arguments::Are(&[Takes::Struct, Takes::Text]), Arguments::Are(&[Takes::Struct, Takes::Whole])],
        |given, constants| Ok(field(given, constants.get(1).copied().flatten())?.1.data_type().clone()),
        "The field of a struct, by its name or number.", "struct_extract({'a': 1}, 'a') = 1", struct_extract),
    entry!("struct_insert" [], "struct, name := value, …", STRUCT_AND_FIELDS,
        |given, constants| changed(given, constants, false),
        "A struct with more fields.", "struct_insert({'a': 1}, b := 2) = {'a': 1, 'b': 2}", change),
    entry!("struct_update" [], "struct, name := value, …", STRUCT_AND_FIELDS,
        |given, constants| changed(given, constants, true),
        "A struct with other values, and more fields.", "struct_update({'a': 1}, a := 2) = {'a': 2}", change),
    entry!("struct_concat" [], "structs…", STRUCTS, concat_type, "The fields of all structs in one.",
        "struct_concat({'a': 1}, {'b': 2}) = {'a': 1, 'b': 2}", struct_concat),
    entry!("struct_keys" [], "struct", &[Arguments::Are(&[Takes::Struct])], texts, "The names of the fields.",
        "struct_keys({'a': 1}) = ['a']", struct_keys),
    entry!("map_contains" [], "map, key", MAP_AND_ANY, flag, "Whether a map has a key.",
        "map_contains(MAP {'a': 1}, 'a')", |call| has(call, 0)),
    entry!("map_contains_value" [], "map, value", MAP_AND_ANY, flag, "Whether a map has a value.",
        "map_contains_value(MAP {'a': 1}, 1)", |call| has(call, 1)),
    entry!("map_contains_entry" [], "map, key, value", &[Arguments::Are(&[Takes::Map, Takes::Any, Takes::Any])],
        flag, "Whether a map has a key with this value.", "map_contains_entry(MAP {'a': 1}, 'a', 1)",
        map_contains_entry),
    entry!("map_extract_value" [], "map, key", MAP_AND_ANY, |given, _| Ok(pair(&given[0])?.1.data_type().clone()),
        "The value of a key; NULL if the map lacks it.", "map_extract_value(MAP {'a': 1}, 'a') = 1",
        map_extract_value),
    entry!(
        "map_extract"["element_at"],
        "map, key",
        MAP_AND_ANY,
        |given, _| Ok(DataType::new_list(pair(&given[0])?.1.data_type().clone(), true)),
        "The value of a key as a list, which is empty if the map lacks it.",
        "map_extract(MAP {'a': 1}, 'a') = [1]",
        map_extract
    ),
    entry!("map_from_entries" [], "list of structs", &[Arguments::Are(&[Takes::List])], entries_type,
        "The map of keys and values.", "map_from_entries([{'k': 'a', 'v': 1}])", map_from_entries),
    entry!("map_concat" [], "maps…", &[Arguments::More(&[Takes::Map], Takes::Map)],
        |given, _| Ok(given.iter().find(|map| has_keys(map)).unwrap_or(&given[0]).clone()),
        "The entries of all maps; the last value of a key counts.", "map_concat(MAP {'a': 1}, MAP {'b': 2})",
        map_concat),
]];
