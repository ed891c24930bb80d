/** Room on a disk that is used up bit by bit. */
export interface DiskRoom {
  /**
   * To be asked before so many bytes are written.
   * @throws AppError StorageFull where they would come out of the reserve
   */
  take(bytes: number): Promise<void>
  /** The same before a file or a folder is made. */
  takeFile(): Promise<void>
}
