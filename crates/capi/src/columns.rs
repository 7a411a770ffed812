//! Columns of names, and their codes in a row.

use std::ffi::c_char;

use minrnn_model::{Category, UNSEEN};

use crate::failure::{Failure, guarded, valued};
use crate::model::{MODELS, ModelHandle};
use crate::pointers::{self, expect_apart};
use crate::status::Status;

/// The number of names that column `column` distinguishes; 0 if it holds numbers, or on error.
#[unsafe(no_mangle)]
pub extern "C" fn minrnn_column_names(model: *const ModelHandle, column: usize) -> usize {
    valued(0, || Ok(MODELS.shared(model.addr())?.names_of(column)?.len()))
}

/// The name with code `code` in column `column`; null on error. It is valid as long as the model.
#[unsafe(no_mangle)]
pub extern "C" fn minrnn_column_name(model: *const ModelHandle, column: usize, code: usize) -> *const c_char {
    valued(std::ptr::null(), || {
        let model = MODELS.shared(model.addr())?;
        let names = model.names_of(column)?;
        let name = names.get(code).map(|name| name.as_ptr());
        let among = names.len();
        name.ok_or_else(|| Failure::new(Status::Input, format!("column {column} has no name {code} among {among} (counted from 0)")))
    })
}

/// The code of `name`, ignoring surrounding blanks, in column `column` of a row: −1 if training never saw it. A name containing a zero byte
/// cannot be looked up; its code is its index among the names.
///
/// # Safety
/// `name` is null or a text that ends with a zero byte; `code` is null or has room for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minrnn_column_code(model: *const ModelHandle, column: usize, name: *const c_char, code: *mut f64) -> Status {
    guarded(|| {
        pointers::expect_place("code", code)?;
        // SAFETY: the caller's promise.
        let name = unsafe { pointers::text("name", name) }?;
        expect_apart(["name", "code"], (name.as_ptr(), name.count_bytes() + 1), (code, 1))?;
        let model = MODELS.shared(model.addr())?;
        // Refuses a column that the model does not have.
        model.names_of(column)?;
        let category: Option<&Category> = model.table()?.categories().iter().find(|category| category.column == column);
        let numbers = || Failure::new(Status::Kind, format!("column {column} holds numbers, there is none for a name"));
        let category = category.ok_or_else(numbers)?;
        // A table's names are UTF-8.
        let found = name.to_str().map_or(UNSEEN, |name| category.code(name));
        // SAFETY: the caller's promise.
        unsafe { pointers::give("code", code, found) }
    })
}
