import { Command, Note, PageHeader } from '../../shared/parts.tsx'
import { remote, text } from '../platform.ts'

/** A page that only administrators of the tenant read, for others. */
export const TenantOnly = ({ title, command }: { title: string; command: string }) => (
  <>
    <PageHeader title={title} />
    <Note mood="info">
      <p>{text.value.audit.adminOnly}</p>
    </Note>
    <Command command={remote(command)} />
  </>
)
