import { expect, it } from 'vitest'
import { parseEfiFlag, readSecureBoot } from '../../../src/host/machine.ts'
import { machine } from '../../fixtures/host/tree.ts'

const vendor = '8be4df61-93ca-11d2-aa0d-00e098032b8c'
/** A variable of efivarfs: attributes (boot and runtime access), then one byte. */
const variable = (name: string, value: number) =>
  `/sys/firmware/efi/efivars/${name}-${vendor} = \u0006\0\0\0${String.fromCharCode(value)}\n`

it.each([
  ['on', variable('SecureBoot', 1) + variable('SetupMode', 0), true],
  ['on, where the firmware has no setup mode', variable('SecureBoot', 1), true],
  ['off', variable('SecureBoot', 0) + variable('SetupMode', 0), false],
  ['off in setup mode', variable('SecureBoot', 1) + variable('SetupMode', 1), false],
  ['off in firmware that does not know it', variable('BootCurrent', 0), false],
  ['unknown where variables are not shown', '/sys/firmware/efi/efivars/\n', undefined],
  ['unknown without EFI', '', undefined],
])('Secure Boot is %s', async (_, tree, expected) => {
  expect(await readSecureBoot(machine('', tree))).toBe(expected)
})

it('an EFI variable is parsed after attributes that are not text', () => {
  const bytes = Buffer.from([0xa7, 0, 0, 0, 1])
  expect(parseEfiFlag(bytes.toString('utf8'))).toBe(true)
})

it('an EFI variable that is too short is unknown', () => {
  expect(parseEfiFlag('\u0006\0\0\0')).toBeUndefined()
})
