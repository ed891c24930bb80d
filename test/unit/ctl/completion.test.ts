import { execa } from 'execa'
import { expect, it } from 'vitest'
import { bashCompletion } from '../../../src/ctl/help.ts'
import { commandTable } from '../../../src/edgehostctl/nouns.ts'

/** What bash offers for the last word. */
async function complete(...words: readonly string[]): Promise<string[]> {
  const script = `${bashCompletion(commandTable)}
COMP_WORDS=(edgehostctl "$@"); COMP_CWORD=$#; _edgehostctl; printf '%s\\n' "\${COMPREPLY[@]}"`
  const { stdout } = await execa('bash', ['--norc', '-c', script, 'bash', ...words])
  return stdout.split('\n')
}

it.each<[string[], string[]]>([
  [['st'], ['status']],
  [['s'], ['status', 'session', 'support']],
  [
    ['session', ''],
    ['list', 'revoke', 'revoke-all'],
  ],
  [
    ['sessions', ''],
    ['list', 'revoke', 'revoke-all'],
  ],
  [['help', 'sessions', 'l'], ['list']],
  [['--host', 'box', 'audit', 'd'], ['download']],
  [['--host', 'box', ':', '5081', 'audit', 'v'], ['verify']],
  [
    ['--output', ''],
    ['table', 'json', 'yaml'],
  ],
  [['-o', 'j'], ['json']],
  [
    ['--output', '=', ''],
    ['table', 'json', 'yaml'],
  ],
  [['--output', '=', 'y'], ['yaml']],
  [['status', '--out'], ['--output']],
  [['session', 'list', '--li'], ['--limit']],
  [['status', '--li'], ['']],
  [['help', 'au'], ['audit']],
  [
    ['help', 'audit', ''],
    ['list', 'verify', 'download'],
  ],
  [
    ['completion', ''],
    ['bash', 'names'],
  ],
  [['content', 'reg'], ['registry']],
  [
    ['content', 'registry', ''],
    ['show', 'config'],
  ],
  [['help', 'content', 'registry', 'c'], ['config']],
  [
    ['content', 'registry', 'config', '--for', ''],
    ['containerd', 'k3s', 'podman', 'docker'],
  ],
  [['nonsense', ''], ['']],
])('bash completes %j', async (words, offered) => {
  expect(await complete(...words)).toEqual(offered)
})

it('bash completes file names where a file is expected', async () => {
  expect(await complete('config', 'check', '/etc/host')).toContain('/etc/hostname')
  expect(await complete('api', 'post', '/v1', '--data', '/etc/hostn')).toEqual(['/etc/hostname'])
})
