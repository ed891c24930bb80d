import type { Readable } from 'node:stream'
import type { AuditHead } from './record.ts'
import type { Search } from './search.ts'
import type { Verification } from './verification.ts'

/** The trail for administrators. */
export interface AuditAccess extends Search {
  /** @param expected a head that was kept elsewhere */
  verify(expected: AuditHead | undefined): Promise<Verification>
  unwritten(): number
  /** A tar archive of all records. */
  download(): Readable
}
