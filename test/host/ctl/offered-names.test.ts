import { chmodSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createCtlShell, type CtlShell } from '../../support/ctl-shell.ts'

const uid = '3f2c5e2e-93a4-4c43-8f0e-00000000000'
let shell: CtlShell

beforeAll(async () => {
  shell = await createCtlShell()
  // A file, which timeout(1) can run.
  const script = `#!/bin/sh\nexec '${process.execPath}' '${shell.ctl.program}' "$@"\n`
  writeFileSync(shell.at('edgehostctl'), script)
  chmodSync(shell.at('edgehostctl'), 0o755)
})
afterAll(() => shell.stop())

/** What bash offers for the last word, and what it prints beside. */
async function complete(words: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const quoted = words.map((word) => `'${word}'`).join(' ')
  const script = `source <(edgehostctl completion bash)
COMP_WORDS=(edgehostctl ${quoted}); COMP_CWORD=${words.length}; _edgehostctl; printf '%s\\n' "\${COMPREPLY[@]}"`
  const PATH = `${dirname(shell.at('edgehostctl'))}:/usr/bin:/bin`
  const { stdout, stderr } = await shell.run(script, { PATH, 'BASH_FUNC_edgehostctl%%': '', ...env })
  expect(stderr).toBe('')
  return stdout.split('\n')
}

it.each<[string[], string[]]>([
  [
    ['session', 'revoke', ''],
    [`${uid}0`, `${uid}1`],
  ],
  [['sessions', 'revoke', `${uid}1`], [`${uid}1`]],
  [['content', 'show', ''], [`${uid}2`]],
  [['content', 'delete', '3'], [`${uid}2`]],
  [
    ['cluster', 'rollback', ''],
    ['2', '1'],
  ],
  [['content', 'discard', ''], ['']],
  [['content', 'show', '--out'], ['--output']],
])('bash completes %j by what this host has', async (words, offered) => {
  expect(await complete(words)).toEqual(offered)
})

it('another host is not asked, and a daemon that is not there is no message', async () => {
  shell.asked.length = 0
  expect(await complete(['--host', 'box', 'session', 'revoke', ''])).toEqual([''])
  expect(await complete(['session', 'revoke', ''], { EDGEHOSTCTL_HOST: 'box' })).toEqual([''])
  expect(shell.asked).toEqual([])
  expect(await complete(['session', 'revoke', ''], { EDGEHOSTCTL_SOCKET: '/nowhere' })).toEqual([''])
})
