//! Validation of cubins (ELF files): a truncated file must not reach the driver.

/// Checks that the bytes are a 64-bit ELF file with all headers and sections inside them. The
/// driver receives no length and trusts the headers.
pub(crate) fn check_complete(bytes: &[u8]) -> Result<(), String> {
    let field = |offset: usize, len: usize| -> Option<u64> {
        let mut word = [0; 8];
        word[..len].copy_from_slice(bytes.get(offset..offset.checked_add(len)?)?);
        Some(u64::from_le_bytes(word))
    };
    let is_inside = |offset: u64, len: u64| {
        offset
            .checked_add(len)
            .is_some_and(|end| end <= bytes.len() as u64)
    };
    if bytes.get(..6) != Some(b"\x7fELF\x02\x01") {
        return Err("not a 64-bit ELF file".into());
    }
    let tables_and_sections = || -> Option<bool> {
        let (programs, program_size, program_count) = (field(32, 8)?, field(54, 2)?, field(56, 2)?);
        let (sections, section_size, section_count) = (field(40, 8)?, field(58, 2)?, field(60, 2)?);
        let mut is_complete = is_inside(programs, program_size * program_count)
            && is_inside(sections, section_size * section_count);
        for index in 0..if is_complete { section_count } else { 0 } {
            const NOBITS: u64 = 8;
            let header = usize::try_from(sections + index * section_size).ok()?;
            let kind = field(header + 4, 4)?;
            is_complete &=
                kind == NOBITS || is_inside(field(header + 24, 8)?, field(header + 32, 8)?);
        }
        Some(is_complete)
    };
    match tables_and_sections() {
        Some(true) => Ok(()),
        _ => Err(format!(
            "truncated file: {} bytes are fewer than the ELF headers state",
            bytes.len()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds an ELF header, one section of 16 bytes, and its table.
    fn elf() -> Vec<u8> {
        let mut bytes = vec![0; 64 + 16 + 64];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[40] = 80; // section table
        bytes[58] = 64;
        bytes[60] = 1;
        bytes[80 + 24] = 64; // the section's offset
        bytes[80 + 32] = 16; // and size
        bytes
    }

    #[test]
    fn accepts_a_complete_cubin_and_rejects_every_truncation() {
        let complete = elf();
        assert_eq!(check_complete(&complete), Ok(()));
        for len in 0..complete.len() {
            assert!(check_complete(&complete[..len]).is_err(), "{len}");
        }
        let mut long_section = complete.clone();
        long_section[80 + 32] = 81;
        assert!(check_complete(&long_section).is_err());
        let mut huge_offset = complete;
        huge_offset[80 + 24..80 + 32].fill(0xff);
        assert!(check_complete(&huge_offset).is_err());
    }
}
