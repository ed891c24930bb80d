import { createHmac } from 'node:crypto'

/** What the id of a host may be made of, the strongest first. */
export interface IdentitySources {
  /** `host.id` of the configuration, taken whole. */
  readonly configured: string | undefined
  /** What was chosen before. */
  readonly stored: string | undefined
  /** /sys/class/dmi/id/product_uuid as it stands. */
  readonly productUuid: string | undefined
  /** /etc/machine-id as it stands. */
  readonly machineId: string | undefined
}

/** The id and where it comes from; undefined when the machine has nothing to make one of. */
export interface Identity {
  readonly id: string
  readonly source: 'configuration' | 'stored' | 'product-uuid' | 'machine-id'
}

/** Chooses the id of this host; the first source that answers wins. */
export function chooseIdentity(sources: IdentitySources): Identity | undefined {
  if (sources.configured !== undefined) return { id: sources.configured, source: 'configuration' }
  if (sources.stored !== undefined) return { id: sources.stored, source: 'stored' }
  const uuid = usableProductUuid(sources.productUuid)
  if (uuid !== undefined) return { id: `edge-${uuid}`, source: 'product-uuid' }
  const derived = idOfMachineId(sources.machineId)
  if (derived !== undefined) return { id: `edge-${derived}`, source: 'machine-id' }
  return undefined
}

// Firmware that was never given a UUID of its own says one of these on every board of the line.
const sharedUuids = new Set([
  '03000200040005000006000700080009', // AMI's default
  '00020003000400050006000700080009', // the same, in the other byte order
  '030201000504070608090a0b0c0d0e0f', // bytes counting up
  '000102030405060708090a0b0c0d0e0f', // the same, in the other byte order
  '12345678123456781234567812345678',
  '12345678123456789012345678901234',
  '123456781234567890abcddeefaabbcc',
  '4c4c454400002010802080c04f202020', // Dell, service tag of spaces
])

/**
 * The product UUID as 32 lower-case hex digits, or undefined when the vendor left junk there.
 * Format: SMBIOS specification 7.2.1; an all-zero or all-F value means "not set".
 */
export function usableProductUuid(text: string | undefined): string | undefined {
  const value = text?.trim().toLowerCase() ?? ''
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(value)) return undefined
  const digits = value.replaceAll('-', '')
  // One or two digits over and over: 000…, fff…, fefe…
  if (/^(..)\1{15}$/.test(digits) || sharedUuids.has(digits)) return undefined
  return digits
}

// Fixed for ever: another value would rename every host that has no product UUID.
const applicationId = Buffer.from('d1a6f0c27b3e4c58a94e0b6f7d2c85e3', 'hex')

/**
 * 128 bits made of the machine-id, which itself must not be shown (machine-id(5)): HMAC-SHA256 with the
 * machine-id as key over our application id, as sd_id128_get_machine_app_specific(3) does it, but cut
 * without the six bits that make a version 4 UUID of it.
 */
export function idOfMachineId(text: string | undefined): string | undefined {
  const value = text?.trim() ?? ''
  // "uninitialized" before the first boot is complete.
  if (!/^[0-9a-f]{32}$/.test(value) || /^0+$/.test(value)) return undefined
  return createHmac('sha256', Buffer.from(value, 'hex')).update(applicationId).digest('hex').slice(0, 32)
}
