import type { Role } from '../base/role.ts'
import { hash } from 'node:crypto'

/** `create`, `update`, `delete`: a change of a resource. `action`: an operation. `activity`: of users and sessions. */
export type AuditAction = 'create' | 'update' | 'delete' | 'action' | 'activity'

/** `unknown`: the daemon was interrupted during the operation. */
export type AuditOutcome = 'success' | 'refused' | 'failed' | 'unknown'

/** The content of a record. Unknown text is empty. */
export interface AuditEntry {
  /** `service`: a host, in the trail of its platform. */
  readonly actorType: 'user' | 'system' | 'service'
  /** Name of the account, of the part of the daemon that acted, or of the host. */
  readonly actor: string
  readonly role: Role | ''
  /** Address of the client. */
  readonly address: string
  readonly action: AuditAction
  /** Kind of the resource, for example `session`. */
  readonly kind: string
  readonly resourceName: string
  readonly resourceUid: string
  /** Text for people. */
  readonly message: string
  readonly outcome: AuditOutcome
  /** HTTP status of the reply, if it was a request. */
  readonly status: number | null
  readonly requestId: string
  /** Uid of the user behind the request; on the platform only. */
  readonly actorUid?: string | undefined
  /** Uid of the project in which it took effect, without one the tenant; on the platform only. */
  readonly projectUid?: string | undefined
}

/** One link of the chain. */
export interface AuditRecord extends AuditEntry {
  /** 1, 2, 3 … without gaps. */
  readonly seq: number
  readonly uid: string
  readonly actorUid: string
  readonly projectUid: string
  /** Milliseconds since 1970, UTC. */
  readonly at: number
  /** Hash of the previous record; zeros for the first. */
  readonly previousHash: Uint8Array
  /** SHA-256 of the canonical form. */
  readonly hash: Uint8Array
}

/** The newest record. With it, any change or removal of an earlier record can be detected. */
export interface AuditHead {
  readonly seq: number
  readonly hash: Uint8Array
}

/** Head of a trail without records. */
export const emptyHead: AuditHead = { seq: 0, hash: new Uint8Array(32) }

export const isSameHash = (one: Uint8Array, two: Uint8Array): boolean => Buffer.compare(one, two) === 0

export const isSameHead = (one: AuditHead, two: AuditHead): boolean =>
  one.seq === two.seq && isSameHash(one.hash, two.hash)

const longestName = 256
const longestText = 1_024

/**
 * The hashed form: a JSON array, UTF-8 and without spaces, of the version of this form, the previous hash in hex and
 * the fields in this order. It never changes: a new field needs a new version. Records with the uid of an actor or of a project
 * have version 2, all others version 1, so that the records of hosts, also of earlier releases, have one form. A uid that is added to a record or
 * taken from it changes its form.
 */
export function canonicalForm(record: Omit<AuditRecord, 'hash'>): string {
  const { seq, uid, at, previousHash } = record
  const { actorType, actor, role, address, action, kind, resourceName, resourceUid } = record
  const { message, outcome, status, requestId, actorUid, projectUid } = record
  const hasUids = actorUid !== '' || projectUid !== ''
  return JSON.stringify([
    ...[hasUids ? 2 : 1, hex(previousHash), seq, uid, at],
    ...[actorType, actor, role, address, action, kind, resourceName, resourceUid],
    ...[message, outcome, status, requestId],
    ...(hasUids ? [actorUid, projectUid] : []),
  ])
}

/** Computes the hash of a record. */
export const hashOf = (record: Omit<AuditRecord, 'hash'>): Uint8Array =>
  hash('sha256', canonicalForm(record), 'buffer')

/** Creates the record that follows `head`. */
export function chainRecord(head: AuditHead, entry: AuditEntry, uid: string, at: number): AuditRecord {
  const record = {
    ...entry,
    seq: head.seq + 1,
    uid,
    at,
    previousHash: head.hash,
    actor: plainText(entry.actor, longestName),
    address: plainText(entry.address, longestName),
    resourceName: plainText(entry.resourceName, longestName),
    resourceUid: plainText(entry.resourceUid, longestName),
    message: plainText(entry.message, longestText),
    requestId: plainText(entry.requestId, longestName),
    actorUid: plainText(entry.actorUid ?? '', longestName),
    projectUid: plainText(entry.projectUid ?? '', longestName),
  }
  return { ...record, hash: hashOf(record) }
}

/**
 * Makes text safe for a terminal, a table and a database: characters that control or reorder a line are escaped as
 * `\u{1b}`, a lone surrogate is replaced, and the text is cut to this many bytes of UTF-8, never within a character.
 */
export function plainText(text: string, bytes: number): string {
  const short = text.slice(0, bytes).toWellFormed()
  const escaped = short.replace(unprintable, (each) => `\\u{${(each.codePointAt(0) ?? 0).toString(16)}}`)
  if (Buffer.byteLength(escaped) <= bytes) return escaped
  const { read } = new TextEncoder().encodeInto(escaped, new Uint8Array(bytes))
  return escaped.slice(0, read)
}

// Control characters, line and paragraph separators, and marks that change the direction of writing (CVE-2021-42574).
// eslint-disable-next-line no-control-regex -- searches for control characters
const unprintable = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

export const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')
