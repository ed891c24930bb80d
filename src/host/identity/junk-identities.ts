// Values that firmware reports where the machine was given no identity of its own. Collected from the lists of inventory
// and monitoring agents (osquery, GLPI agent, netdata), systemd's hwdb and vendors' notes on UUIDs that are not
// unique. Each of these values would give all machines of a product line the same id.

// Those that look random or are told apart by no rule below.
const sharedUuids = new Set([
  '01234567891011121314151617181920',
  '4c4c454400002010802080c04f202020', // a service tag of spaces
  // Random, but the same on all machines of a product line.
  'dc698397fa544cf282c8b1b5307a6a7f',
  '8e275844178f44a8aceba7d7e5178c63',
  '890e2d14cacd45d1ae66bc80e8bfeb0f',
  '8a95d1987f4611e5bf8b08002704d48e', // made by uuidgen on a developer's machine, and compiled in
])

/**
 * Whether many machines have this UUID, given as 32 lower-case hex digits. Firmware and kernel differ in the byte order of the
 * first three fields (SMBIOS specification 7.2.1), so both are judged.
 */
export const isSharedUuid = (digits: string): boolean => isMadeUp(digits) || isMadeUp(otherByteOrder(digits))

const otherByteOrder = (digits: string): string =>
  digits.replace(/^(..)(..)(..)(..)(..)(..)(..)(..)/, '$4$3$2$1$6$5$8$7')

/** What a person or a program writes in place of a UUID; one of 2^64 real ones is taken for it at most. */
function isMadeUp(digits: string): boolean {
  // A model number followed by F only.
  if (sharedUuids.has(digits) || /f{24}$/.test(digits)) return true
  const bytes = [...Buffer.from(digits, 'hex')]
  // Digits repeated, by byte or by field: 000…, fefe…, 1111…-2222-…; or small numbers, as 0300…0400-0500-…
  if (new Set(bytes).size <= 5 || bytes.every((byte) => byte <= 0x10)) return true
  // Bytes or digits that count: 0102…, 0011…, 1234567890ab…, fedc…
  const steps = bytes.slice(1).map((byte, index) => (byte - (bytes[index] ?? 0) + 256) % 256)
  if (new Set(steps).size === 1) return true
  const isNext = (from: string, to: string) =>
    'fedcba9876543210fedcba98765432109876543210'.includes(to + from)
  const pairs = Array.from({ length: 31 }, (_, at) => [digits.charAt(at), digits.charAt(at + 1)] as const)
  const rising = pairs.filter(([from, to]) => isNext(from, to)).length
  const falling = pairs.filter(([from, to]) => isNext(to, from)).length
  return Math.max(rising, falling) >= 20
}

// "Not Settable", "To be filled by O.E.M.", "Default string", "Base Board Serial Number", "SerNum0", "N/A",
// "Unspecified Chassis Board Serial Number", "Type2 - Board Serial Number", dmidecode's "<BAD INDEX>".
const placeholderWords = (
  'applicable asset available badindex base board by chassis default empty enclosure filled invalid mb na no none ' +
  'not null num number oem outofspec present product provided ser serial set settable smbios specified string ' +
  'system tag tobe type[0-9] undefined unknown unspecified'
).split(' ')
const onlyPlaceholders = new RegExp(`^(${placeholderWords.join('|')})*[0-9]?$`)

const counting = ['01234567890123456789', '12345678901234567890', '0123456789abcdef', '9876543210']

/** Whether a serial, given as lower-case letters and digits, identifies no machine: too short, or a placeholder. */
export function isPlaceholderSerial(bare: string): boolean {
  if (bare.length < 4 || /^(.)\1*$/.test(bare)) return true
  if (onlyPlaceholders.test(bare.replace(/x{3,}/g, ''))) return true
  const number = bare.replace(/^[a-z]+/, '')
  // After letters (MB-1234567890), only a long row of counting digits is surely a placeholder.
  return counting.some((row) => row.startsWith(bare) || (number.length >= 8 && row.startsWith(number)))
}
