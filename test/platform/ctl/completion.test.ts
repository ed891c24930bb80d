import { execa } from 'execa'
import { expect, it } from 'vitest'
import { bashCompletion } from '../../../src/ctl/help.ts'
import { commandTable } from '../../../src/edgeplatformctl/nouns.ts'

/** What bash offers for the last word. */
async function complete(...words: readonly string[]): Promise<string[]> {
  const script = `${bashCompletion(commandTable)}
COMP_WORDS=(edgeplatformctl "$@"); COMP_CWORD=$#; _edgeplatformctl; printf '%s\\n' "\${COMPREPLY[@]}"`
  const { stdout } = await execa('bash', ['--norc', '-c', script, 'bash', ...words])
  return stdout.split('\n')
}

it.each<[string[], string[]]>([
  [['u'], ['user']],
  [['prof'], ['profile']],
  [['projects', 'cr'], ['create']],
  [['help', 'hosts', 'sh'], ['show']],
])('bash completes %j', async (words, offered) => {
  expect(await complete(...words)).toEqual(offered)
})
