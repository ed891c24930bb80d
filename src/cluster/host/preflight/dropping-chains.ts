import { isRecord, type JsonObject } from '../../../base/json.ts'
import { ask } from '../../../host/ask.ts'
import type { CommandRunner } from '../../../system/runner.ts'

const timeoutMs = 10_000
// The rules of a host with some thousand blocked addresses.
const longestRulesetBytes = 16_777_216

/**
 * Reads which chains of this host drop or reject a new connection of a pod, over TCP or UDP, that no rule of them accepts: by their policy, or by a rule whose
 * conditions each of them meets, as firewalld and many images have it at the end. nft knows the chains of iptables too, but not those of its
 * old variant, and not the conditions of extensions of iptables.
 * @param privileged runs programs with CAP_NET_ADMIN
 * @returns as operators name them; none where no program can say it, since a firewall is only warned of
 */
export async function readDroppingChains(privileged: CommandRunner): Promise<readonly string[]> {
  const ruleset: CommandRunner = {
    run: (program, args, options) =>
      privileged.run(program, args, { ...options, maxOutputBytes: longestRulesetBytes }),
  }
  const askNft = (what: string) => ask(ruleset, 'nft', ['--json', 'list', what], timeoutMs)
  const [rules, legacy, ofIptables] = await Promise.all([
    askNft('ruleset'),
    // With the name of a table it would make this table.
    ask(ruleset, 'iptables-legacy-save', [], timeoutMs),
    ask(ruleset, 'iptables-nft-save', [], timeoutMs),
  ])
  // Without the rules the policies are still known.
  const nft = 'stdout' in rules ? rules : await askNft('chains')
  return [
    ...new Set([
      ...('stdout' in nft ? parseNftChains(nft.stdout) : []),
      ...('stdout' in ofIptables ? parseSavedChains(ofIptables.stdout, 'nft') : []),
      ...('stdout' in legacy ? parseSavedChains(legacy.stdout, 'legacy') : []),
    ]),
  ]
}

/** What becomes of the first packet that a pod sends, if conditions that depend on more do not hold. */
type Verdict = 'accept' | 'drop' | 'return' | { readonly to: string; readonly comesBack: boolean }

interface Chain {
  /** As operators name it. */
  readonly shown: string
  /** Whether all packets to this host, or through it, come here. */
  readonly isBase: boolean
  readonly drops: boolean
  /** The verdicts of its rules that every such packet meets, in order. */
  readonly verdicts: Verdict[]
}

/** The base chains in which such a packet ends as dropped. */
const droppingOf = (chains: ReadonlyMap<string, Chain>): readonly string[] =>
  [...chains.values()]
    .filter((chain) => chain.isBase && (endOf(chain, chains, new Set()) ?? chain.drops))
    .map(({ shown }) => shown)

/** Whether a chain drops the packet, true, or accepts it; undefined where it comes out of the chain undecided. */
function endOf(
  chain: Chain | undefined,
  chains: ReadonlyMap<string, Chain>,
  passed: Set<Chain>,
): boolean | undefined {
  // A loop of chains is refused by the kernel; a text may have one.
  if (!chain || passed.has(chain)) return undefined
  passed.add(chain)
  for (const verdict of chain.verdicts) {
    if (verdict === 'return') return undefined
    if (typeof verdict === 'string') return verdict === 'drop'
    const end = endOf(chains.get(verdict.to), chains, passed)
    if (end !== undefined || !verdict.comesBack) return end
  }
  return undefined
}

type Protocol = 'tcp' | 'udp'

const ofBoth = (chainsFor: (protocol: Protocol) => readonly string[]): readonly string[] => [
  ...new Set([...chainsFor('tcp'), ...chainsFor('udp')]),
]

/** The output of `nft --json list ruleset`, or of `list chains`, which has no rules: libnftables-json(5). */
export function parseNftChains(text: string): readonly string[] {
  let found: unknown
  try {
    found = JSON.parse(text)
  } catch {
    return []
  }
  const listed = isRecord(found) && Array.isArray(found.nftables) ? found.nftables.filter(isRecord) : []
  return ofBoth((protocol) => chainsOfNft(listed, protocol))
}

function chainsOfNft(listed: readonly JsonObject[], protocol: Protocol): readonly string[] {
  const keyOf = (each: JsonObject, name: unknown) =>
    `${String(each.family)} ${String(each.table)} ${String(name)}`
  const chains = new Map<string, Chain>()
  for (const { chain, rule } of listed) {
    if (isRecord(chain)) {
      const { family, table, name, type = 'filter', hook, policy } = chain
      chains.set(keyOf(chain, name), {
        shown: `chain ${String(name)} of table ${String(family)} ${String(table)}`,
        isBase: type === 'filter' && ['prerouting', 'input', 'forward'].includes(String(hook)),
        drops: policy === 'drop',
        verdicts: [],
      })
    } else if (isRecord(rule) && Array.isArray(rule.expr)) {
      const verdict = verdictOfNft(rule.expr.filter(isRecord), protocol, (name) => keyOf(rule, name))
      if (verdict) chains.get(keyOf(rule, rule.chain))?.verdicts.push(verdict)
    }
  }
  return droppingOf(chains)
}

// Statements that every packet passes.
const passing = ['counter', 'log', 'comment']

function verdictOfNft(
  statements: readonly JsonObject[],
  protocol: Protocol,
  keyOf: (chain: unknown) => string,
): Verdict | undefined {
  for (const statement of statements) {
    const [name = '', value] = Object.entries(statement)[0] ?? []
    if (name === 'match' && isRecord(value) && holds(value, protocol)) continue
    const chosen = name === 'vmap' && isRecord(value) ? chosenOf(value, protocol) : undefined
    if (chosen) return verdictOfNft([chosen], protocol, keyOf)
    // What iptables has added: a comment is a match that all packets have.
    const of = name === 'xt' && isRecord(value) ? `xt ${String(value.type)} ${String(value.name)}` : name
    if (of === 'accept' || of === 'xt target ACCEPT') return 'accept'
    if (['drop', 'reject', 'xt target DROP', 'xt target REJECT'].includes(of)) return 'drop'
    if (of === 'return') return 'return'
    if ((of === 'jump' || of === 'goto') && isRecord(value))
      return { to: keyOf(value.target), comesBack: of === 'jump' }
    if (!passing.includes(of) && of !== 'xt match comment') return undefined
  }
  return undefined
}

/** What such a packet has, by the words of nft; it comes from an interface of a pod, of any name. */
const valueOfPacket = (read: string, protocol: Protocol): string | undefined =>
  ({
    'meta l4proto': protocol,
    'ip protocol': protocol,
    'meta nfproto': 'ipv4',
    'meta protocol': 'ip',
    'meta pkttype': 'host',
    'ct state': 'new',
    'fib type': 'local',
    'tcp flags': protocol === 'tcp' ? 'syn' : undefined,
  })[read]

const interfaces = new Set(['meta iif', 'meta iifname'])
const ofPods = /^(?:cni|veth|flannel|cali|lxc|cilium|kube|vxlan)/

/** What an expression reads, as `ct state`. */
function readOf(expression: unknown): string {
  const [kind = '', value] = isRecord(expression) ? (Object.entries(expression)[0] ?? []) : []
  // Some bits of the flags, as fin, syn, rst and ack of which syn alone is set.
  if (kind === '&' && Array.isArray(value)) return readOf(value[0])
  if (!isRecord(value)) return ''
  const { key, protocol, field, result } = value
  return kind === 'payload' ? `${String(protocol)} ${String(field)}` : `${kind} ${String(key ?? result)}`
}

/** The values on the right of a match, alone or of a set without a name. */
function valuesOf(right: unknown): readonly unknown[] {
  const set = isRecord(right) && Array.isArray(right.set) ? (right.set as unknown[]) : right
  return Array.isArray(set) ? (set as unknown[]) : [set]
}

/** Whether a match holds for every such packet. */
function holds({ op, left, right }: JsonObject, protocol: Protocol): boolean {
  const read = readOf(left)
  const values = valuesOf(right)
  if (interfaces.has(read))
    return op === '!=' && values.includes('lo') && !values.some((each) => ofPods.test(String(each)))
  const [value] = values
  if (isRecord(value) && isRecord(value.prefix) && value.prefix.len === 0) return op !== '!='
  const own = valueOfPacket(read, protocol)
  return own !== undefined && values.includes(own) === (op !== '!=')
}

/** What a map without a name has for such a packet. */
function chosenOf({ key, data }: JsonObject, protocol: Protocol): JsonObject | undefined {
  const own = valueOfPacket(readOf(key), protocol)
  const found = valuesOf(data).find((each) => Array.isArray(each) && each[0] === own && own !== undefined)
  const verdict: unknown = Array.isArray(found) ? found[1] : undefined
  return isRecord(verdict) ? verdict : undefined
}

/** The output of iptables-save(8) of one of its variants; a table for addresses decides on no packet. */
export const parseSavedChains = (text: string, variant: 'legacy' | 'nft'): readonly string[] =>
  [...text.matchAll(/^\*(\S+)$([\s\S]*?)^COMMIT$/gm)].flatMap(([, table = '', rules = '']) =>
    table === 'nat' ? [] : ofBoth((protocol) => parseSavedTable(table, rules, variant, protocol)),
  )

function parseSavedTable(
  table: string,
  text: string,
  variant: 'legacy' | 'nft',
  protocol: Protocol,
): readonly string[] {
  const chains = new Map<string, Chain>()
  const place = variant === 'nft' ? `table ip ${table}` : 'iptables-legacy'
  for (const [, name = '', policy] of text.matchAll(/^:(\S+) (\S+)/gm))
    chains.set(name, {
      shown: `chain ${name} of ${place}${variant === 'nft' || table === 'filter' ? '' : `, table ${table}`}`,
      isBase: ['PREROUTING', 'INPUT', 'FORWARD'].includes(name),
      drops: policy === 'DROP',
      verdicts: [],
    })
  for (const [, name = '', rule = ''] of text.matchAll(/^-A (\S+) (.*)$/gm)) {
    const verdict = verdictOfSaved(rule.match(/"(?:[^"\\]|\\.)*"|\S+/g) ?? [], protocol, chains)
    if (verdict) chains.get(name)?.verdicts.push(verdict)
  }
  return droppingOf(chains)
}

const verdictsOfTargets: Readonly<Record<string, Verdict>> = {
  ACCEPT: 'accept',
  DROP: 'drop',
  REJECT: 'drop',
  RETURN: 'return',
}

/** @param words of a rule, after the name of its chain */
function verdictOfSaved(
  words: readonly string[],
  protocol: Protocol,
  chains: ReadonlyMap<string, Chain>,
): Verdict | undefined {
  let isNegated = false
  for (let at = 0; at < words.length; at += 1) {
    const [option = '', value = '', second = ''] = words.slice(at, at + 3)
    if (option === '-j' || option === '-g')
      return (
        verdictsOfTargets[value] ??
        (chains.has(value) ? { to: value, comesBack: option === '-j' } : undefined)
      )
    if (option === '!') {
      isNegated = true
      continue
    }
    const isOfNew = value.split(',').includes('NEW')
    const isMet = {
      '-m': true,
      '--comment': true,
      '-p': value === protocol,
      '--dst-type': value === 'LOCAL',
      // Of another interface than that of the host itself it is not known.
      '-i': value === 'lo' || !isNegated ? false : undefined,
      '--ctstate': isOfNew,
      '--state': isOfNew,
      '--tcp-flags': protocol === 'tcp' && value === 'FIN,SYN,RST,ACK' && second === 'SYN',
    }[option]
    if (isMet === undefined || isMet === isNegated) return undefined
    isNegated = false
    at += option === '--tcp-flags' ? 2 : 1
  }
  return undefined
}
