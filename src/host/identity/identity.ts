import { createHmac } from 'node:crypto'
import type { Logger } from '../../system/log.ts'
import type { HostFiles } from '../files.ts'

// Values that firmware reports where the machine was given no identity of its own. Collected from the lists of inventory
// and monitoring agents (osquery, GLPI agent, netdata), systemd's hwdb and vendors' notes on UUIDs that are not
// unique. Each of these values would give all machines of a product line the same id.

// Values that look random or that no rule below finds.
const sharedUuids = new Set([
  '01234567891011121314151617181920',
  '4c4c454400002010802080c04f202020', // a service tag of spaces
  // Random, but the same on all machines of a product line.
  'dc698397fa544cf282c8b1b5307a6a7f',
  '8e275844178f44a8aceba7d7e5178c63',
  '890e2d14cacd45d1ae66bc80e8bfeb0f',
  '8a95d1987f4611e5bf8b08002704d48e', // made by uuidgen on a developer's machine, and compiled in
  // Examples of RFC 4122, RFC 9562 and of many documents.
  '123e4567e89b12d3a456426614174000',
  '550e8400e29b41d4a716446655440000',
  'f81d4fae7dec11d0a76500a0c91e6bf6',
  '6ba7b8109dad11d180b400c04fd430c8',
  'a1b2c3d4e5f67890abcdef1234567890',
])

/**
 * Whether many machines have this UUID, given as 32 lower-case hex digits. Firmware and kernel differ in the byte order of the
 * first three fields (SMBIOS specification 7.2.1), so both are judged.
 */
const isSharedUuid = (digits: string): boolean => isMadeUp(digits) || isMadeUp(otherByteOrder(digits))

const otherByteOrder = (digits: string): string =>
  digits.replace(/^(..)(..)(..)(..)(..)(..)(..)(..)/, '$4$3$2$1$6$5$8$7')

/** Whether a person or a program made it up; at most one of 2^64 real UUIDs is taken for made up. */
function isMadeUp(digits: string): boolean {
  // A model number followed by F only.
  if (sharedUuids.has(digits) || /f{24}$/.test(digits)) return true
  const bytes = [...Buffer.from(digits, 'hex')]
  // Digits repeated, by byte or by field: 000…, fefe…, 1111…-2222-…; or small numbers, as 0300…0400-0500-…
  if (new Set(bytes).size <= 5 || bytes.every((byte) => byte <= 0x10)) return true
  // Pairs of digits that count, as numbers of 16 or of 10: 0102…, 0011…, aabb…, 0809 1011…; a few steps may be others, as from ff to 00.
  const decimals = bytes.map((byte) => Number(byte.toString(16)))
  if (counts(bytes, 256) || (decimals.every(Number.isInteger) && counts(decimals, 100))) return true
  // A zero MAC address of a document, or the digits of a text.
  if (/^0{20}(?:0011223344|0123456789|1122334455|aabbccddee)/.test(digits)) return true
  if (bytes.every((byte) => byte >= 0x20 && byte < 0x7f))
    return isPlaceholderSerial(
      String.fromCharCode(...bytes)
        .toLowerCase()
        .replace(/[^a-z0-9]/g, ''),
    )
  const isNext = (from: string, to: string) =>
    'fedcba9876543210fedcba98765432109876543210'.includes(to + from)
  const pairs = Array.from({ length: 31 }, (_, at) => [digits.charAt(at), digits.charAt(at + 1)] as const)
  const rising = pairs.filter(([from, to]) => isNext(from, to)).length
  const falling = pairs.filter(([from, to]) => isNext(to, from)).length
  return Math.max(rising, falling) >= 20 || rising + falling >= 28
}

/** Whether at least 13 of the 15 steps between numbers are the same. */
function counts(numbers: readonly number[], modulus: number): boolean {
  const steps = numbers.slice(1).map((each, index) => (each - (numbers[index] ?? 0) + modulus) % modulus)
  return steps.some((step) => steps.filter((each) => each === step).length >= 13)
}

// "Not Settable", "To be filled by O.E.M.", "Default string", "Base Board Serial Number", "SerNum0", "N/A",
// "Unspecified Chassis Board Serial Number", "Type2 - Board Serial Number", dmidecode's "<BAD INDEX>".
const placeholderWords = (
  'applicable asset available badindex base board by chassis default defined empty enclosure filled invalid mb na no none ' +
  'not null num number odm oem outofspec part present product provided ser serial set settable smbios specified string ' +
  'system tag tbd tobe type[0-9] undefined unknown unspecified'
).split(' ')
const onlyPlaceholders = new RegExp(`^(${placeholderWords.join('|')})*[0-9]?$`)

const counting = [
  ...['01234567890123456789', '12345678901234567890', '0123456789abcdef', '1234567890abcdef'],
  ...['9876543210', '87654321', 'abcdefghijklmnopqrstuvwxyz'],
]

/** Whether a serial, given as lower-case letters and digits, identifies no machine: too short, or a placeholder. */
export function isPlaceholderSerial(bare: string): boolean {
  if (bare.length < 4 || /^(.)\1*$/.test(bare)) return true
  if (onlyPlaceholders.test(bare.replace(/x{3,}/g, ''))) return true
  const number = bare.replace(/^[a-z]+/, '')
  // After letters (MB-1234567890), only a long row of counting digits is surely a placeholder.
  return counting.some((row) => row.startsWith(bare) || (number.length >= 8 && row.startsWith(number)))
}

/** The id of a host and where it comes from. */
export interface Identity {
  readonly id: string
  /** The entry of `host.identitySources` that was used. */
  readonly source: string
}

// Documentation/ABI/testing/sysfs-class-dmi (kernel); the device tree's root node has its serial number in the
// property "serial-number" (Devicetree Specification 3.2).
const named: Readonly<Record<string, readonly string[]>> = {
  'product-uuid': ['/sys/class/dmi/id/product_uuid'],
  'product-serial': ['/sys/class/dmi/id/product_serial'],
  'board-serial': ['/sys/class/dmi/id/board_serial'],
  'chassis-serial': ['/sys/class/dmi/id/chassis_serial'],
  'device-tree-serial': ['/proc/device-tree/serial-number', '/sys/firmware/devicetree/base/serial-number'],
  'machine-id': ['/etc/machine-id'],
}

// The machine-id is confidential (machine-id(5)), also where it is configured by its path.
const machineIds = new Set(['/etc/machine-id', '/var/lib/dbus/machine-id'])

/**
 * Reads the sources of `host.identitySources` in order; the first usable value becomes the id. A source that cannot be
 * read is logged and skipped.
 * @returns undefined where no source has a usable value
 */
export async function readIdentity(
  files: HostFiles,
  sources: readonly string[],
  log: Logger,
): Promise<Identity | undefined> {
  for (const source of sources) {
    for (const path of named[source] ?? [source]) {
      const text = await files.text(path).catch((error: unknown) => {
        log.warn(
          { source, path, err: error },
          `a source of the identity cannot be read; see namei -l ${path}, or set host.identitySources`,
        )
        return undefined
      })
      const value = usableValue(source, path, text)
      if (value !== undefined) return { id: `edge-${value}`, source }
    }
  }
  return undefined
}

function usableValue(source: string, path: string, text: string | undefined): string | undefined {
  if (machineIds.has(path)) return idOfMachineId(text)
  return source === 'product-uuid' ? usableProductUuid(text) : usableSerial(text)
}

/**
 * The product UUID as 32 lower-case hex digits, or undefined where it is a placeholder of the vendor.
 * Format: SMBIOS specification 7.2.1; an all-zero or all-F value means "not set".
 */
export function usableProductUuid(text: string | undefined): string | undefined {
  const value = text?.trim().toLowerCase() ?? ''
  if (!uuidForm.test(value)) return undefined
  const digits = value.replaceAll('-', '')
  return isSharedUuid(digits) ? undefined : digits
}

const uuidForm = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/**
 * A serial number as part of an id: the ASCII letters, digits and dashes of the first line, in lower case, without
 * dashes at its ends. A UUID is treated as by `usableProductUuid`. undefined for a placeholder, where fewer than four
 * letters and digits remain, and where the id would be longer than 128 characters.
 */
export function usableSerial(text: string | undefined): string | undefined {
  // Device tree strings end with a NUL.
  const line = (text?.split(/[\0\n]/)[0] ?? '').trim().toLowerCase()
  if (uuidForm.test(line)) return usableProductUuid(line)
  const serial = line.replace(/[^a-z0-9-]/g, '').replace(/^-+|-+$/g, '')
  if (serial.length > 123 || isPlaceholderSerial(serial.replaceAll('-', ''))) return undefined
  return serial
}

// Must never change: another value would rename every host that has no product UUID.
const applicationId = Buffer.from('d1a6f0c27b3e4c58a94e0b6f7d2c85e3', 'hex')

/**
 * 128 bits derived from the machine-id, which itself must not be shown (machine-id(5)): HMAC-SHA256 of our application id
 * with the machine-id as key, as in sd_id128_get_machine_app_specific(3), but without setting the six bits that would
 * make it a version 4 UUID.
 */
export function idOfMachineId(text: string | undefined): string | undefined {
  const value = text?.trim() ?? ''
  // "uninitialized" before the first boot is complete.
  if (!/^[0-9a-f]{32}$/.test(value) || /^0+$/.test(value)) return undefined
  return createHmac('sha256', Buffer.from(value, 'hex')).update(applicationId).digest('hex').slice(0, 32)
}
