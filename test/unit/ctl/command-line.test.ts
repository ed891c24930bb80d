import { describe, expect, it } from 'vitest'
import { parseCommandLine } from '../../../src/ctl/command-line.ts'
import { exitCodes, Failure } from '../../../src/ctl/exit-codes.ts'
import { helpText } from '../../../src/ctl/help.ts'
import { commandTable } from '../../../src/edgehostctl/nouns.ts'
import { manualMarkdown, manualPage, ofHost } from '../../../build/manual.ts'

const parse = (line: string) => parseCommandLine(line.split(' ').filter(Boolean), commandTable)
const help = (words: readonly string[], columns?: number) => helpText(words, commandTable, columns)
const refusal = (line: string): string => {
  try {
    parse(line)
  } catch (error) {
    expect(error).toBeInstanceOf(Failure)
    expect((error as Failure).exitName).toBe('usage')
    return (error as Failure).message
  }
  throw new Error(`${line} was not refused`)
}

describe('a command line', () => {
  it.each([
    ['status', 'status', [], {}],
    [
      '-o json --host=box session list --limit 3',
      'session list',
      [],
      { output: 'json', host: 'box', limit: '3' },
    ],
    // Nouns are singular; their plurals mean the same.
    ['-o json sessions list', 'session list', [], { output: 'json' }],
    ['clusters diff', 'cluster diff', [], {}],
    ['-o yaml hosts usage', 'host usage', [], { output: 'yaml' }],
    ['help sessions list', 'help', ['session', 'list'], {}],
    ['api get sessions', 'api get', ['sessions'], {}],
    ['session revoke 12-ab', 'session revoke', ['12-ab'], {}],
    ['content --for=k3s registry config', 'content registry config', [], { for: 'k3s' }],
    ['api post /v1/x --data -', 'api post', ['/v1/x'], { data: '-' }],
    ['login', 'login', [], {}],
    ['login alice --password-stdin', 'login', ['alice'], { 'password-stdin': '' }],
    ['--output=json --output=yaml status', 'status', [], { output: 'yaml' }],
    ['session list --help', 'help', ['session', 'list'], {}],
    ['--version', 'version', [], {}],
    ['help audit verify', 'help', ['audit', 'verify'], {}],
    [
      'network set eth0 --address 192.0.2.9/24 --gateway 192.0.2.1 --window 90 --no-confirm',
      'network set',
      ['eth0'],
      { address: '192.0.2.9/24', gateway: '192.0.2.1', window: '90', 'no-confirm': '' },
    ],
    [
      'network delete br0 --dry-run --drop-address',
      'network delete',
      ['br0'],
      { 'dry-run': '', 'drop-address': '' },
    ],
  ])('the command line %s is parsed', (line, name, rest, given) => {
    const { command, ...read } = parse(line)
    expect(command.name).toBe(name)
    expect(read).toEqual({ arguments: rest, options: given })
  })

  it.each([
    ['statsu', 'unknown command statsu; did you mean status?'],
    ['sesions list', 'did you mean session?'],
    ['sessions lits', 'did you mean session list?'],
    ['audit', 'audit needs one of: list, verify, download'],
    ['content registry', 'content registry needs one of: show, config'],
    [
      'content registry confg',
      'unknown command content registry confg; did you mean content registry config?',
    ],
    ['content regisrty show', 'unknown command content regisrty; did you mean content registry?'],
    ['', 'a command is missing'],
    ['status --ouptut=json', 'unknown option --ouptut; did you mean --output?'],
    ['status -o xml', '-o is xml; it must be one of: table, json, yaml'],
    ['status --output', '--output needs a value: FORMAT'],
    ['status --host --no-color', '--host needs a value: HOST[:PORT]'],
    ['status --no-color=yes', '--no-color takes no value'],
    ['status --limit=3', 'status takes no --limit'],
    ['status now', 'unexpected argument now'],
    ['network set', 'network set needs NAME'],
    ['network set eth0 --type bootp', '--type is bootp; it must be one of: dhcp, static, none'],
    ['network set eth0 --member eth1', 'network set takes no --member'],
    ['session revoke', 'session revoke needs UID'],
    ['status --data=\u001b[31m', 'status takes no --data'],
    ['\u001b[31m', 'unknown command \\u001b[31m'],
  ])('the command line %s is refused with its reason', (line, words) => {
    expect(refusal(line)).toContain(words)
  })
})

it('lists of a command of the network have all their values', () => {
  const { command, ...read } = parse(
    'network bond bond0 --member eth1 eth2 --type dhcp --nameserver 192.0.2.53 --mode 802.3ad',
  )
  expect(command.name).toBe('network bond')
  expect(read).toEqual({
    arguments: ['bond0'],
    options: { type: 'dhcp', mode: '802.3ad' },
    lists: { member: ['eth1', 'eth2'], nameserver: ['192.0.2.53'] },
  })
})

describe('an option that means something else in one command', () => {
  it.each([
    'content build --file a=b --oci-layout x y --file c=d e=f --output=out.tar -o json',
    '--file a=b content --file c=d build --oci-layout x y --file e=f --output out.tar -o json',
  ])('%s has its lists, its archive and its format', (line) => {
    const { command, ...read } = parse(line)
    expect(command.name).toBe('content build')
    expect(read).toEqual({
      arguments: [],
      options: { output: 'json' },
      lists: { file: ['a=b', 'c=d', 'e=f'], 'oci-layout': ['x', 'y'] },
      outputFile: 'out.tar',
    })
  })

  it('other commands take it as before', () => {
    expect(parse('definition build --file a.tgz')).toMatchObject({ options: { file: 'a.tgz' } })
    expect(parse('definition build --output a.tgz')).toMatchObject({ options: { file: 'a.tgz' } })
    expect(parse('definition build --output a.tgz')).not.toHaveProperty('outputFile')
  })

  it('an output that is neither a format nor an archive is refused, naming both', () => {
    const all = '.tar, .tar.gz, .tgz or .tar.zst'
    const ofDefinitions = '.tar.gz, .tgz or .tar.zst'
    for (const [line, endings] of [
      ['content build --output b.zip', all],
      ['-o b.zip content build', all],
      ['content -o b.zip build', all],
      ['definition build -o b.zip', ofDefinitions],
      ['--output b.tar definition build', ofDefinitions],
      ['support -o b.zip', '.tar.zst or .tar'],
      ['audit download -o b.zip', '.tar'],
    ] as const)
      expect(refusal(line)).toContain(`, or a file that ends in ${endings}\n`)
    for (const line of ['-o b.zip status', '-o b.tar status', 'cluster kubeconfig -o b.tar'])
      expect(refusal(line)).toMatch(/it must be one of: table, json, yaml\n/)
  })

  it('an ending of another format than the archive has is refused, by --output and by --file', () => {
    for (const ending of ['.tgz', '.tar.gz']) {
      expect(refusal(`support -o b${ending}`)).toContain(', or a file that ends in .tar.zst or .tar\n')
      expect(refusal(`support --file b${ending}`)).toContain(
        '; the archive is a file that ends in .tar.zst or .tar\n',
      )
    }
    expect(refusal('support --file b.zip')).toContain('the archive is a file that ends in .tar.zst or .tar')
    expect(refusal('audit download --file b.tar.gz')).toContain('the archive is a file that ends in .tar\n')
    for (const file of ['b.tar.zst', 'b.tar', '-', 'b', 'b.2026'])
      expect(parse(`support --file ${file}`)).toMatchObject({ options: { file } })
    expect(parse('support -o b.tar.zst -o json')).toMatchObject({
      options: { file: 'b.tar.zst', output: 'json' },
    })
  })
})

describe('a command that passes arguments to another program', () => {
  it.each([
    ['cluster kubectl -- get pods -A -o wide', ['get', 'pods', '-A', '-o', 'wide'], {}],
    ['--host box cluster kubectl -- -n shop get pods', ['-n', 'shop', 'get', 'pods'], { host: 'box' }],
    ['cluster kubectl --host=box -- get pods', ['get', 'pods'], { host: 'box' }],
    ['cluster kubectl -- exec -it web -- ls --help', ['exec', '-it', 'web', '--', 'ls', '--help'], {}],
    ['clusters kubectl -- status --host x', ['status', '--host', 'x'], {}],
    ['cluster kubectl -- --version', ['--version'], {}],
    ['cluster kubectl --', [], {}],
  ])('%s has all that is behind --', (line, rest, options) => {
    const { command, ...read } = parse(line)
    expect(command.name).toBe('cluster kubectl')
    expect(read).toEqual({ arguments: rest, options })
  })

  it.each([
    ['cluster kubectl get pods', 'cluster kubectl -- get pods'],
    ['cluster kubectl get pods -o wide', 'cluster kubectl -- get pods -o wide'],
    ['cluster kubectl -n shop get pods', 'cluster kubectl -- -n shop get pods'],
    ['cluster kubectl -o wide get pods', 'cluster kubectl -- -o wide get pods'],
    ['cluster kubectl --host box logs -f web', 'cluster kubectl --host box -- logs -f web'],
    ['--host box cluster kubectl exec web -- ls', '--host box cluster kubectl -- exec web -- ls'],
    ['cluster -- kubectl get pods', 'cluster kubectl -- get pods'],
    ['cluster kubectl', 'cluster kubectl -- ...'],
  ])('%s is refused, with what to type', (line, typed) => {
    expect(refusal(line)).toContain(`the arguments of kubectl begin behind --: edgehostctl ${typed}\n`)
  })

  it('words with blanks and control characters are shown as they can be typed', () => {
    const words = ['cluster', 'kubectl', 'get', '-l', 'a in (b)', 'x\u001b[31m']
    expect(() => parseCommandLine(words, commandTable)).toThrow(
      "cluster kubectl -- get -l 'a in (b)' 'x\\u001b[31m'",
    )
  })

  it('it has no format of its own, and has a help', () => {
    expect(refusal('-o json cluster kubectl -- get pods')).toContain(
      'takes no --output; write the one of kubectl behind --',
    )
    expect(parse('cluster kubectl --help')).toMatchObject({ arguments: ['cluster', 'kubectl'] })
    expect(help(['cluster', 'kubectl'])).toContain('Usage: edgehostctl cluster kubectl -- ARGUMENT...')
  })
})

describe('the help of a group', () => {
  it.each([
    [
      'host',
      [
        ...[
          'show',
          'usage',
          'inventory',
          'files list',
          'files get',
          'reboot',
          'shutdown',
          'reset',
          'stops',
          'hostname',
          'time',
        ],
      ].map((verb) => `host ${verb}`),
    ],
    ['audit', ['audit list', 'audit verify', 'audit download']],
    [
      'content',
      [
        ...['build', 'inspect', 'upload', 'list', 'show', 'delete', 'usage', 'uploads', 'discard'],
        ...['images', 'registry show', 'registry config'],
      ].map((verb) => `content ${verb}`),
    ],
    ['content registry', ['content registry show', 'content registry config']],
    [
      'definition',
      ['build', 'init', 'inspect', 'validate', 'needs', 'upload'].map((verb) => `definition ${verb}`),
    ],
    ['config', ['config check']],
    ['configuration', ['configuration get', 'configuration set']],
  ])('the help of the group %s shows its commands and no others', (group, names) => {
    const shown = /Commands:\n([^]*?)\n\n/.exec(help(group.split(' ')))?.[1] ?? ''
    for (const { name } of commandTable.commands)
      expect(shown.includes(`  ${name} `)).toBe(names.includes(name))
    expect(help(parse(`${group} --help`).arguments)).toBe(help(parse(`help ${group}`).arguments))
  })

  it('a group without a command is refused, naming its commands', () => {
    expect(refusal('audit')).toContain('See: edgehostctl help audit')
    expect(refusal('audit lsit')).toContain('See: edgehostctl help audit')
  })
})

describe('what is made from the table', () => {
  it('the help fits a narrow terminal without a break inside a word', () => {
    const words = new Set(help([]).split(/\s+/))
    for (const topic of [[], ['audit'], ['audit', 'list']]) {
      const text = help(topic, 40)
      for (const line of text.split('\n')) expect(line.length).toBeLessThanOrEqual(40)
      if (topic.length === 0) for (const word of text.split(/\s+/)) expect(words).toContain(word)
    }
  })

  it('the help names every command, option and exit code, in lines that fit', () => {
    const text = help([])
    for (const { name } of commandTable.commands) expect(text).toContain(`  ${name}`)
    for (const { code } of Object.values(exitCodes)) expect(text).toMatch(new RegExp(`^  ${code} `, 'm'))
    for (const line of text.split('\n')) expect(line.length).toBeLessThanOrEqual(80)
  })

  it('each command has its help', () => {
    for (const { name, summary } of commandTable.commands) {
      const text = help(name.split(' '))
      expect(text).toContain(`Usage: edgehostctl ${name}`)
      expect(text).toContain(summary.slice(0, 20))
    }
  })

  it('manual page and documentation contain every command and option', () => {
    const manual = { table: commandTable, ...ofHost }
    const [page, markdown] = [manualPage(manual), manualMarkdown(manual)]
    for (const { name } of commandTable.commands) {
      expect(page).toContain(`.B ${name.replaceAll('-', '\\-')}`)
      expect(markdown).toContain(`| \`${name}`)
    }
    for (const name of commandTable.options.keys()) expect(markdown).toContain(`--${name}`)
  })
})
