import type { HostFiles } from './files.ts'

// EFI_GLOBAL_VARIABLE (UEFI specification 3.3).
const folder = '/sys/firmware/efi/efivars'
const vendor = '8be4df61-93ca-11d2-aa0d-00e098032b8c'

/**
 * Reads whether UEFI Secure Boot was on at the start. As the kernel decides it (drivers/firmware/efi): the variable
 * SecureBoot is 1, and SetupMode, in which no signature is checked, is not; firmware without the variable has no Secure
 * Boot. The value cannot change while the host runs, and each reading is a call of the firmware.
 * @returns undefined without EFI, or where its variables cannot be read
 */
export async function readSecureBoot(files: HostFiles): Promise<boolean | undefined> {
  const text = await files.text(`${folder}/SecureBoot-${vendor}`)
  if (text === undefined) {
    const names = await files.names(folder)
    return names.length > 0 && !names.includes(`SecureBoot-${vendor}`) ? false : undefined
  }
  const secureBoot = parseEfiFlag(text)
  const setupMode = parseEfiFlag((await files.text(`${folder}/SetupMode-${vendor}`)) ?? '')
  return secureBoot === undefined ? undefined : secureBoot && setupMode !== true
}

/**
 * The flag in a file of efivarfs (Documentation/filesystems/efivarfs.rst): four bytes of attributes, one of data.
 * Reading it as text loses no byte: a byte that is not UTF-8 becomes one replacement character.
 */
export function parseEfiFlag(text: string): boolean | undefined {
  return text.length < 5 ? undefined : text.charCodeAt(4) === 1
}
