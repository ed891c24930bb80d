import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bootCtlPair, type CtlPair } from './host/ctl-pair.ts'
import type { Edgehostd } from './host/edgehostd.ts'
import { openPane } from './host/pane.ts'

const right = 'operator canary $HOME %n 0901'
let pair: CtlPair
let host: Edgehostd
let other: Edgehostd
let address: string

beforeAll(async () => {
  pair = await bootCtlPair()
  ;({ host, other, address } = pair)
  await host.addUser({ name: 'chief', password: right, groups: ['sudo'] })
})
afterAll(() => pair.unplug())

const fingerprint = () => pair.fingerprint()
const forgetAll = () => other.sh('rm -rf /root/.config/edgehostctl')

describe('edgehostctl on a terminal', () => {
  it('a login asks for the host and the password, which is not shown, and restores the terminal', async () => {
    await forgetAll()
    const pane = await openPane(other, 80)
    await pane.type(`edgehostctl --host ${address} login chief`, 'Enter')
    await pane.until(/\[y\/N\]/)
    expect((await pane.unbroken()).replaceAll('\n', '')).toContain(await fingerprint())
    await pane.type('y', 'Enter')
    await pane.until(/Password of chief on 10\.78\.0\.1:/)
    await pane.type(right, 'Enter')
    const shown = await pane.until(/Logged in on/)
    expect(shown).not.toContain('canary')
    // Typed text is echoed again, also after Ctrl-C at the question.
    await pane.type('clear', 'Enter')
    // The question of before is not the one that is answered below.
    await pane.until(/^\$ ?$/)
    await pane.type(`edgehostctl --host ${address} login chief`, 'Enter')
    await pane.until(/Password of chief/)
    await pane.type('secret', 'C-c')
    await pane.until(/:\n\$ ?$/)
    await pane.type('echo ended with $?', 'Enter')
    expect(await pane.until(/^ended with 130$/m)).toMatch(/\$ echo ended with/)
    await pane.close()
  })

  it('a new password is asked for when the old one has expired', async () => {
    await host.addUser({ name: 'stale', password: right })
    await host.output(['chage', '-d', '0', 'stale'])
    const pane = await openPane(other, 80)
    const command = `edgehostctl --host ${address} --fingerprint ${await fingerprint()} login stale`
    await pane.type(`clear; ${command}`, 'Enter')
    await pane.until(/Password of stale/)
    await pane.type(right, 'Enter')
    await pane.until(/New password:/)
    await pane.type('renewed canary 0902', 'Enter')
    await pane.until(/Repeat the new password:/)
    await pane.type('renewed canary 0902', 'Enter')
    expect(await pane.until(/as stale \(viewer\)/)).not.toContain('canary')
    await pane.close()
  })

  it('the answer no changes nothing', async () => {
    await forgetAll()
    const pane = await openPane(other, 80)
    await pane.type(`edgehostctl --host ${address} status; echo ended with $?`, 'Enter')
    await pane.until(/\[y\/N\]/)
    await pane.type('', 'Enter')
    await pane.until(/^ended with 5$/m)
    await pane.close()
  })

  it.each([80, 120])('the status fits %d columns, in colours', async (columns) => {
    const pane = await openPane(host, columns)
    await pane.type('clear; edgehostctl status', 'Enter')
    await pane.until(/Next: [^]*\n\$$/)
    const text = await pane.text()
    expect(await pane.unbroken()).toBe(text)
    expect(settle(text)).toBe(columns === 80 ? narrow : broad)
    expect(await pane.coloured()).toContain('\u001b[32m')
    await pane.type('clear; NO_COLOR=1 edgehostctl status', 'Enter')
    await pane.until(/Next: [^]*\n\$$/)
    expect(await pane.coloured()).not.toContain('\u001b[')
    await pane.type('clear; edgehostctl audit list --limit=20', 'Enter')
    await pane.until(/^TIME[^]*\n\$$/m)
    expect(await pane.unbroken()).toBe(await pane.text())
    await pane.close()
  })

  it('Tab completes commands', async () => {
    const pane = await openPane(host, 80)
    await pane.type('source <(edgehostctl completion bash)', 'Enter')
    await pane.until(/\n\$ ?$/)
    await pane.type('edgehostctl aud', 'Tab')
    await pane.until(/edgehostctl audit ?$/)
    await pane.type('ver', 'Tab')
    await pane.until(/edgehostctl audit verify ?$/)
    await pane.close()
  })
})

/** Replaces values that differ between machines by constant ones. */
function settle(text: string): string {
  return text
    .replace(/^.*\$.*\n/, '')
    .replace(/\n\$ ?$/, '')
    .replace(/(?<=Host: ).*/, 'HOST')
    .replace(/edge-[0-9a-f]+/, 'edge-ID')
    .replace(/(?<=Uptime: ).*/, 'UPTIME')
    .replace(/(?<=Certificate: ).*/, 'CERTIFICATE')
    .replaceAll(/[0-9A-F]{2}(:[0-9A-F]{2}){15,}/g, (found) => found.replaceAll(/[0-9A-F]{2}/g, 'XX'))
    .replace(/(?<=edgehostd )\d+\.\d+\.\d+/, 'VERSION')
    .replace(/(?<=Disk: )[^]*(?=\n *Sessions)/, 'DISKS')
    .replace(/(?<=Facts: )[^]*(?=\n *Disk)/, 'FACTS')
    .replace(/(?<=Sessions: ).*/, 'SESSIONS')
    .replace(/(?<=Errors: )[^]*(?=\n *Next)/, 'ERRORS')
    .replace(/(?<=Next: )[^]*/, 'NEXT')
}

const top = `        Host: HOST
          ID: edge-ID
       State: running
        Mode: airgap, managed here
     Version: edgehostd VERSION
      Uptime: UPTIME
     Address: https://10.78.0.1:5080
 Certificate: CERTIFICATE
`
const bottom = `       Facts: FACTS
        Disk: DISKS
    Sessions: SESSIONS
      Errors: ERRORS
        Next: NEXT`
const bytes = (number: number) => Array.from({ length: number }, () => 'XX').join(':')
const narrow = `${top} Fingerprint: ${bytes(16)}:\n              ${bytes(16)}\n${bottom}`
const broad = `${top} Fingerprint: ${bytes(32)}\n${bottom}`
