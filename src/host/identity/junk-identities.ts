// Values that firmware reports where the machine was given no identity of its own. Collected from the lists of inventory
// and monitoring agents (osquery, GLPI agent, netdata), systemd's hwdb and vendors' notes on UUIDs that are not
// unique. Each of these values would give all machines of a product line the same id.

const sharedUuids = new Set([
  '03000200040005000006000700080009', // AMI's default
  '00020003000400050006000700080009', // the same, in the other byte order
  '02000100030004000005000600070008', // a hypervisor's
  '030201000504070608090a0b0c0d0e0f', // bytes counting up
  '000102030405060708090a0b0c0d0e0f', // the same, in the other byte order
  '07090201010303010807060504030201',
  '01234567891011121314151617181920',
  '12345678123456781234567812345678',
  '12345678123456789012345678901234',
  '123456781234567890abcddeefaabbcc',
  '10000000000080000040000000000000',
  '4c4c454400002010802080c04f202020', // Dell, service tag of spaces
  // Random, but the same on all machines of a product line.
  'dc698397fa544cf282c8b1b5307a6a7f',
  '8e275844178f44a8aceba7d7e5178c63',
  '890e2d14cacd45d1ae66bc80e8bfeb0f',
])

/** Whether many machines have this UUID, given as 32 lower-case hex digits. */
export function isSharedUuid(digits: string): boolean {
  // One or two digits repeated: 000…, fff…, fefe…; or a model number followed by F only.
  return /^(..)\1{15}$/.test(digits) || /f{24}$/.test(digits) || sharedUuids.has(digits)
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
