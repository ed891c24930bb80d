import { createHmac } from 'node:crypto'
import type { Logger } from '../../system/log.ts'
import type { HostFiles } from '../files.ts'
import { isPlaceholderSerial, isSharedUuid } from './junk-identities.ts'

/** The id of a host and where it comes from. */
export interface Identity {
  readonly id: string
  /** The entry of `host.identitySources` that answered. */
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

// Confidential under either name, also for one who gives it as a path.
const machineIds = new Set(['/etc/machine-id', '/var/lib/dbus/machine-id'])

/**
 * Asks the sources of `host.identitySources` in their order; the first with a usable value makes the id. One that
 * cannot be read is logged and passed over.
 * @returns undefined when none has one
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
 * The product UUID as 32 lower-case hex digits, or undefined when the vendor left junk there.
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
 * dashes at its ends. A UUID is taken as `usableProductUuid` takes it. undefined when a placeholder stands there,
 * when fewer than four letters and digits are left, or when the id would be longer than 128 characters.
 */
export function usableSerial(text: string | undefined): string | undefined {
  // Device tree strings end with a NUL.
  const line = (text?.split(/[\0\n]/)[0] ?? '').trim().toLowerCase()
  if (uuidForm.test(line)) return usableProductUuid(line)
  const serial = line.replace(/[^a-z0-9-]/g, '').replace(/^-+|-+$/g, '')
  if (serial.length > 123 || isPlaceholderSerial(serial.replaceAll('-', ''))) return undefined
  return serial
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
