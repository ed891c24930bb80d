import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { ChangeSet } from '../../../src/network/change-set.ts'
import { filesOfChange } from '../../../src/network/trial/change.ts'
import { output } from '../../e2e/host/process.ts'

const program = join(import.meta.dirname, '../../../systemd/network-trial')
const uid = '0198c1f0-6f0e-7c3a-9d52-2f6d7c1b0a44'
const trial = '/run/edgehostd-network/trial'
const state = '/mnt/state'

/** As netplan has it: the trial replaces a text that the revert puts back. */
const change: ChangeSet = {
  backend: 'networkd',
  links: [],
  summary: '',
  before: { files: [text('/run/owner/link', 'before')], devices: [], up: [], expected: [] },
  after: { files: [text('/run/owner/link', 'after')], devices: [], up: [], expected: [] },
  kept: [text('/mnt/etc/link', 'k'.repeat(10_000)), { path: '/mnt/etc/old', mode: 0, content: 'absent' }],
}

function text(path: string, content: string) {
  return { path, mode: 0o644, content: { text: content } }
}

/** Runs a script in a mount namespace in which /run and /mnt are small, with a change that is applied. */
async function run(script: string): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'edgehostd-trial-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  for (const [path, content] of filesOfChange(uid, change, 60)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), content)
  }
  const prepare = `
    for place in /run /mnt; do mount -t tmpfs -o size=128k tmpfs $place; done
    mkdir -p ${trial}/foreign ${state} /mnt/etc /run/owner; : > /mnt/etc/old; echo after > /run/owner/link
    cp -R "$1"/. ${trial}; cp -R "$1" ${state}/open; echo ${state} > ${trial}/state-folder
    cd ${trial}; : > undecided; echo 1 > applied; touch foreign/addresses foreign/routes foreign/rules snapshot
    fill() { dd if=/dev/zero of=$1/fill bs=1k 2> /dev/null || true; }
    trial() { code=0; sh ${program} "$@" 2> /tmp/errors || code=$?; echo "exit code $code"; grep cannot /tmp/errors || true; }
    mount -t tmpfs tmpfs /tmp
  `
  return output('unshare', ['--mount', '--net', 'sh', '-euc', prepare + script, 'sh', folder])
}

// Units cannot be stopped and started here: test/e2e/network-change.test.ts has them.
describe.skipIf(process.getuid?.() !== 0)('the program that tries changes of the network', () => {
  it('does not keep a change for whose files there is no room, and keeps it when there is', async () => {
    const said = await run(`fill /mnt; trial confirm ${uid}
      ls -A /mnt/etc; ls ${trial}/undecided; ls ${state}
      rm /mnt/fill; trial confirm ${uid}
      ls -A /mnt/etc; wc -c < /mnt/etc/link; ls ${state}; head -n 1 ${state}/ended/${uid}`)
    expect(said.split('\n')).toEqual([
      'exit code 8',
      `network-trial: /mnt/etc/link cannot be written: No space left on device, so the change ${uid} cannot be kept; make room, and confirm it again before its deadline`,
      ...['old', `${trial}/undecided`, 'open'],
      'exit code 0',
      ...['link', '10000', 'ended', 'confirmed', ''],
    ])
  })

  it('does not keep a change on a file system that is read-only', async () => {
    const said = await run(`mount -t tmpfs -o ro tmpfs /mnt/etc; trial confirm ${uid}; ls ${trial}/undecided`)
    expect(said).toMatch(/^exit code 8\n.*Read-only file system.*\n.*undecided\n$/)
  })

  it('takes a change back although /run and the state folder are full', async () => {
    const said = await run(`fill /mnt; fill /run; trial ask ${uid}; ls ${trial}/reverting; trial revert ${uid}
      cat /run/owner/link; echo; ls /run/edgehostd-network /mnt/etc`)
    expect(said).toContain(`${trial}/reverting\n`)
    expect(said).toMatch(/^before$/m)
    expect(said).toMatch(/^gone$/m)
    expect(said).not.toMatch(/^(trial|link)$/m)
  })
})
