import { createHmac } from 'node:crypto'
import type { Logger } from '../../system/log.ts'
import type { HostFiles } from '../files.ts'
import { isPlaceholderSerial, isSharedUuid } from './junk-identities.ts'

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
